// JSON.parse of a string of escapes
// outcome: cpu, memory, ok

export default { fetch() { JSON.parse('"' + "\\u0041".repeat(1e7) + '"'); return new Response("ok"); } };
