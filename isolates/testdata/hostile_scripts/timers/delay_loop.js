// a delay whose valueOf never returns
// outcome: cpu

export default { fetch() { setTimeout(() => {}, { valueOf() { for (;;); } }); } };
