// structuredClone of an error whose stack is a getter that loops
// outcome: cpu

export default { fetch() { const e = new Error("x"); Object.defineProperty(e, "stack", { get() { for (;;); } }); structuredClone(e); return new Response("ok"); } };
