// new Array(2**27).fill(0)
// outcome: cpu, memory
// parks

export default { fetch() { return new Response(String(new Array(2 ** 27).fill(0).length)); } };
