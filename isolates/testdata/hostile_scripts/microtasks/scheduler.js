// microtasks that queue two more, each
// outcome: cpu, memory

export default { fetch() { const g = () => { queueMicrotask(g); queueMicrotask(g); }; g(); return new Promise(() => {}); } };
