// console.log at the very end of the stack
// outcome: cpu, ok, exception

export default { fetch() { const f = () => { try { f(); } finally { try { console.log({ a: [new Error("deep")] }); } catch {} } }; try { f(); } catch {} return new Response("ok"); } };
