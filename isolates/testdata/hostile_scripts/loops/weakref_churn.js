// WeakRefs to objects that die at once
// outcome: cpu, memory

export default { fetch() { const r = new FinalizationRegistry(() => { for (;;); }); for (;;) { r.register({}, 1); new WeakRef({}).deref(); } } };
