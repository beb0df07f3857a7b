// performance.now by the million, with dates
// outcome: cpu

export default { fetch() { for (;;) { performance.now(); new Date().toISOString(); } } };
