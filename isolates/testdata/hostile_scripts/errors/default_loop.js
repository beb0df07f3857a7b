// a default export whose handler is a getter that never returns
// outcome: cpu
// load

export default new Proxy({}, { get() { for (;;); } });
