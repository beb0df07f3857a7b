// each timer sets two
// outcome: memory, cpu

export default { fetch() { const f = () => { setTimeout(f); setTimeout(f); }; f(); return new Promise(() => {}); } };
