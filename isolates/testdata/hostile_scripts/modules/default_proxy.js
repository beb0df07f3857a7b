// a default export that is a proxy whose traps loop
// outcome: cpu
// load

export default new Proxy({}, { get() { for (;;); } });
