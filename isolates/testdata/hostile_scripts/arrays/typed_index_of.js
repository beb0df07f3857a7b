// indexOf in the largest typed array, over and over
// outcome: cpu
// strays

export default { fetch() { const a = new Uint8Array(60 << 20); for (;;) a.indexOf(1); } };
