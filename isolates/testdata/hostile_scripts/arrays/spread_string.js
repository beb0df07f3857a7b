// a string of 2**28 characters spread into an array
// outcome: memory, cpu
// strays

export default { fetch() { return new Response(String([...".".repeat(2 ** 28)].length)); } };
