// large BigInts kept
// outcome: memory, cpu

export default { fetch() { const a = []; for (let i = 0;; i++) a.push((1n << 100000n) + BigInt(i)); } };
