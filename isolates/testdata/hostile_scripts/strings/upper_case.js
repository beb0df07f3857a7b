// toUpperCase of 2**27 sharp s
// outcome: memory, cpu, exception, ok
// strays

export default { fetch() { "ß".repeat(2 ** 27).toUpperCase(); return new Response("ok"); } };
