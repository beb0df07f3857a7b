// a timer that never returns
// outcome: cpu

export default { fetch() { return new Promise(() => setTimeout(() => { for (;;); }, 1)); } };
