// a WeakMap whose keys are all kept
// outcome: cpu, memory

export default { fetch() { const w = new WeakMap(), keys = []; for (;;) { const k = {}; keys.push(k); w.set(k, new Array(100)); } } };
