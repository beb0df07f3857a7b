// Array.from({length: 2**31})
// outcome: memory, cpu
// parks

export default { fetch() { return new Response(String(Array.from({ length: 2 ** 31 }).length)); } };
