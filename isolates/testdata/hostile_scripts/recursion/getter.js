// a getter that reads itself
// outcome: exception

export default { fetch() { const o = { get x() { return this.x; } }; return o.x; } };
