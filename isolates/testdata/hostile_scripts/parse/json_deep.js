// JSON.parse of a million brackets
// outcome: cpu, ok, exception, memory

export default { fetch() { JSON.parse("[".repeat(1e6) + "]".repeat(1e6)); return new Response("ok"); } };
