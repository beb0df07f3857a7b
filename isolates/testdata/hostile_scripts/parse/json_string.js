// JSON.parse of a string of escapes
// outcome: ok, cpu, memory

export default { fetch() { JSON.parse('"' + "\\u0041".repeat(1e7) + '"'); return new Response("ok"); } };
