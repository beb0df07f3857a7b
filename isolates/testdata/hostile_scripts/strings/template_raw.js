// a tagged template kept by the million
// outcome: cpu, memory

export default { fetch() { const a = []; const tag = (s) => s; for (let i = 0; ; i++) a.push(tag`x${i}y`.raw.concat("x".repeat(100))); } };
