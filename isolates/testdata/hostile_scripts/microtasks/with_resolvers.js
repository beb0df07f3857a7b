// Promise.withResolvers by the million
// outcome: cpu, memory

export default { fetch() { const a = []; for (;;) a.push(Promise.withResolvers()); } };
