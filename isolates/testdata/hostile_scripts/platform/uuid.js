// randomUUID without end
// outcome: cpu, memory

export default { fetch() { const a = []; for (;;) a.push(crypto.randomUUID()); } };
