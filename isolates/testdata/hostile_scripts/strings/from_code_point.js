// String.fromCodePoint of a large array
// outcome: memory, cpu, exception
// strays

export default { fetch() { const a = new Array(1e5).fill(128512); let s = ""; for (;;) s += String.fromCodePoint(...a); } };
