// toLocaleUpperCase of 16 MB, over and over
// outcome: cpu, memory
// strays

export default { fetch() { const s = "ß".repeat(1 << 23); for (;;) s.toLocaleUpperCase("tr"); } };
