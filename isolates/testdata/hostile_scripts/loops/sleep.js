// a handler that waits beyond its wall-clock limit
// outcome: timeout

export default { fetch() { return new Promise((done) => setTimeout(done, 1e5)); } };
