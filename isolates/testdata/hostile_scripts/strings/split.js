// split of 2**28 characters
// outcome: cpu, memory
// parks

export default { fetch() { return new Response(String("ab".repeat(2 ** 27).split("").length)); } };
