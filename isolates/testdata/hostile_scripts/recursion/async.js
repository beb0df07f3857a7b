// an async function that awaits itself
// outcome: cpu, memory, exception

export default { async fetch() { const f = async () => { await f(); }; await f(); return new Response("ok"); } };
