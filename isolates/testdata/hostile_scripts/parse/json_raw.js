// JSON.rawJSON of 64 MB, if there is any
// outcome: memory, cpu

export default { fetch() { JSON.stringify(JSON.rawJSON?.("1".repeat(1 << 26))); return new Response("ok"); } };
