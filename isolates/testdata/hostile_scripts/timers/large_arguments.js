// timers with large arguments
// outcome: memory, cpu, exception

export default { fetch() { for (;;) setTimeout(() => {}, 1e5, new Array(1e5).fill(1.5)); } };
