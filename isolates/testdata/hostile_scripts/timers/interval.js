// an interval of 0 ms
// outcome: timeout, cpu

export default { fetch() { return new Promise(() => setInterval(() => {}, 0)); } };
