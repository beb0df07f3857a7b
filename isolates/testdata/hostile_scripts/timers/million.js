// timers without end
// outcome: memory

export default { fetch() { for (;;) setTimeout(() => {}, 1e6); } };
