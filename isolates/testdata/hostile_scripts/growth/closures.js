// closures over closures
// outcome: memory, cpu

export default { fetch() { let f = () => 0; for (;;) { const g = f, big = new Array(100).fill(0); f = () => g() + big.length; } } };
