// an await in an endless loop
// outcome: cpu

export default { async fetch() { for (;;) await null; } };
