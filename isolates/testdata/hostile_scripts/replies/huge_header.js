// one header of 16 MB
// outcome: cpu, exception, memory

export default { fetch() { return new Response("ok", { headers: { "x-big": "v".repeat(1 << 24) } }); } };
