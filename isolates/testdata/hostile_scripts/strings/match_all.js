// matchAll on 2**27 characters
// outcome: memory, cpu

export default { fetch() { return new Response(String([..."a".repeat(2 ** 27).matchAll(/a/g)].length)); } };
