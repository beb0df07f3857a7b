// for (;;);
// outcome: cpu

export default { fetch() { for (;;); } };
