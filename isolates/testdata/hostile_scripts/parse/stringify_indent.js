// JSON.stringify with indentation of a wide graph
// outcome: cpu, memory, exception

export default { fetch() { const a = new Array(1e4).fill(new Array(1e4).fill(1)); return new Response(JSON.stringify(a, null, 10)); } };
