// a then getter that never returns
// outcome: cpu

export default { async fetch() { return { get then() { for (;;); } }; } };
