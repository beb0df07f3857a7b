// a hot arithmetic loop
// outcome: cpu

export default { fetch() { let x = 1; for (let i = 0;; i = (i + 1) | 0) x = Math.imul(x, 31) ^ i; } };
