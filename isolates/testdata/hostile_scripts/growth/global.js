// globals of ever new names
// outcome: cpu, memory

export default { fetch() { for (let i = 0;; i++) globalThis["g" + i] = new Array(10); } };
