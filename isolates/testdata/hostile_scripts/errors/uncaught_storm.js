// reportError a hundred thousand times
// outcome: cpu, memory, ok

export default { fetch() { for (let i = 0; i < 1e5; i++) reportError(new Error("e" + i)); return new Response("ok"); } };
