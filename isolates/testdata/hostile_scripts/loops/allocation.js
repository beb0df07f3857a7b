// for (;;) new Array(1000).fill(1.5): the defaults of V8 would not let it stop
// outcome: cpu, memory

export default { fetch() { let a; for (;;) { a = new Array(1000).fill(1.5); } return a; } };
