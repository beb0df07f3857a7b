// measures between marks that are getters which loop
// outcome: cpu

export default { fetch() { performance.measure("x", { get start() { for (;;); } }); return new Response("ok"); } };
