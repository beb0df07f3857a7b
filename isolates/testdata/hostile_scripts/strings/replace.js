// replace(/a/g, …) that grows 2**27 characters
// outcome: cpu, memory, exception
// parks

export default { fetch() { return new Response(String("a".repeat(2 ** 27).replace(/a/g, "bbbb").length)); } };
