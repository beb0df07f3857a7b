// Array.from({length: 2**31})
// outcome: cpu, memory
// parks

export default { fetch() { return new Response(String(Array.from({ length: 2 ** 31 }).length)); } };
