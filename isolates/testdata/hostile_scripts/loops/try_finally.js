// finally that loops when execution is terminated
// outcome: cpu

export default { fetch() { try { for (;;); } finally { for (;;); } } };
