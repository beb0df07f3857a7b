// Date.parse of long strings
// outcome: ok, cpu, memory

export default { fetch() { Date.parse("1 ".repeat(1e6)); Date.parse("(".repeat(1e7)); return new Response("ok"); } };
