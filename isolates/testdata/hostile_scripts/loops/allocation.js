// for (;;) new Array(1000).fill(1.5): TurboFan would not stop
// outcome: cpu, memory

export default { fetch() { let a; for (;;) { a = new Array(1000).fill(1.5); } return a; } };
