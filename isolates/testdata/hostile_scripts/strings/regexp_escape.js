// RegExp.escape of 64 MB
// outcome: memory, cpu

export default { fetch() { RegExp.escape?.("(".repeat(1 << 26)); return new Response("ok"); } };
