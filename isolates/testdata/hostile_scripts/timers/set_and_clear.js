// timers set and cleared at once, for ever
// outcome: cpu, exception, memory

export default { fetch() { for (;;) clearTimeout(setTimeout(() => {}, 1e6)); } };
