// a sticky expression executed without end
// outcome: cpu

export default { fetch() { const r = /(?:)/g; for (;;) { r.lastIndex = 0; r.exec("abc"); } } };
