// a body of 500 MB
// outcome: cpu, exception, memory
// strays

export default { fetch() { return new Response("x".repeat(5e8)); } };
