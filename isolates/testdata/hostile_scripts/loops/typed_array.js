// a hot loop over a typed array, without calls
// outcome: cpu

export default { fetch() { const a = new Int32Array(1024); for (let i = 0;; i = (i + 1) & 1023) a[i] = a[(i * 7) & 1023] + 1; } };
