// promises that never settle
// outcome: cpu, memory

export default { fetch() { const a = []; for (;;) a.push(new Promise(() => {}).then(() => a)); } };
