// JSON.parse of 40 MB of small objects, which cannot be interrupted
// outcome: cpu, memory
// parks

export default { fetch() { JSON.parse("[" + "{},".repeat(1.3e7) + "{}]"); return new Response("ok"); } };
