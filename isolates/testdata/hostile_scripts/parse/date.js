// Date.parse of long strings
// outcome: cpu, memory, ok

export default { fetch() { Date.parse("1 ".repeat(1e6)); Date.parse("(".repeat(1e7)); return new Response("ok"); } };
