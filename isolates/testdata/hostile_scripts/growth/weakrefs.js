// WeakRefs and a FinalizationRegistry, churned
// outcome: cpu, memory

export default { fetch() { const r = new FinalizationRegistry(() => {}), a = []; for (;;) { const o = { x: new Array(50) }; r.register(o, o.x); a.push(new WeakRef(o)); } } };
