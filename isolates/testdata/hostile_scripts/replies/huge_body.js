// a body of 500 MB
// outcome: exception, memory, cpu

export default { fetch() { return new Response("x".repeat(5e8)); } };
