// a sort whose comparator never returns
// outcome: cpu

export default { fetch() { [3, 1, 2].sort(() => { for (;;); }); } };
