// an async function that awaits itself
// outcome: exception

export default { async fetch() { const f = async () => { await f(); }; await f(); return new Response("ok"); } };
