// functions bound over and over
// outcome: cpu, memory

export default { fetch() { let f = () => 1; const a = []; for (;;) { f = f.bind(a, 1, 2, 3); a.push(f); } } };
