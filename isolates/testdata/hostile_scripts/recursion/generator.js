// yield* of itself
// outcome: exception

export default { fetch() { function* g() { yield* g(); } for (const x of g()); return new Response("ok"); } };
