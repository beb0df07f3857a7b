// an array concatenated with itself until the end
// outcome: memory, cpu

export default { fetch() { let a = [1.5, 2.5]; for (;;) a = a.concat(a); } };
