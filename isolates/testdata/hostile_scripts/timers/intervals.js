// five thousand intervals
// outcome: cpu, timeout

export default { fetch() { return new Promise(() => { for (let i = 0; i < 5000; i++) setInterval(() => {}, 0); }); } };
