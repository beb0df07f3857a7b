// for (;;) a.slice(), a.concat(), Object.assign
// outcome: cpu, memory

export default { fetch() { const a = new Array(100).fill(1); for (;;) { a.slice(); a.concat(a); Object.assign({}, a); [...a]; } } };
