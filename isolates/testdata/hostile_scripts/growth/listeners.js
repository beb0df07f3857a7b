// event listeners
// outcome: cpu, memory

export default { fetch() { const t = new EventTarget(); for (let i = 0;; i++) t.addEventListener("e" + i, () => i); } };
