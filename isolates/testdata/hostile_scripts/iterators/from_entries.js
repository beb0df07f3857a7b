// Object.fromEntries of endless entries
// outcome: cpu, memory

export default { fetch() { Object.fromEntries((function* () { for (let i = 0; ; i++) yield ["k" + i, i]; })()); } };
