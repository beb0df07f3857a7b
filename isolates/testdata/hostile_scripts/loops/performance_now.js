// a loop on the clock
// outcome: cpu

export default { fetch() { for (;;) performance.now(); } };
