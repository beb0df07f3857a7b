// a replace callback that never returns
// outcome: cpu

export default { fetch() { "aaa".replace(/a/g, () => { for (;;); }); } };
