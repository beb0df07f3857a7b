// split of 2**28 characters
// outcome: memory, cpu
// parks

export default { fetch() { return new Response(String("ab".repeat(2 ** 27).split("").length)); } };
