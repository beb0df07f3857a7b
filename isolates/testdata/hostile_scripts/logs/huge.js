// a line of 256 MB
// outcome: cpu, ok, memory, exception
// strays

export default { fetch() { console.log("x".repeat(2 ** 28), "y".repeat(2 ** 28)); return new Response("ok"); } };
