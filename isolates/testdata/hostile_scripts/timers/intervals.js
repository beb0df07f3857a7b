// five thousand intervals
// outcome: timeout, cpu

export default { fetch() { return new Promise(() => { for (let i = 0; i < 5000; i++) setInterval(() => {}, 0); }); } };
