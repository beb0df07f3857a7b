// promises that never settle
// outcome: memory, cpu

export default { fetch() { const a = []; for (;;) a.push(new Promise(() => {}).then(() => a)); } };
