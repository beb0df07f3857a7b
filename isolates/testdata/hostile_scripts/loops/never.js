// a handler that waits for nothing
// outcome: timeout

export default { fetch() { return new Promise(() => {}); } };
