// endless registrations for finalization of one thing that lives
// outcome: cpu, memory

export default { fetch() { const r = new FinalizationRegistry(() => {}), o = {}; globalThis.o = o; for (;;) r.register(o, new Array(50), {}); } };
