// match(/a/g) on 2**27 characters
// outcome: memory, cpu
// parks

export default { fetch() { return new Response(String("a".repeat(2 ** 27).match(/a/g).length)); } };
