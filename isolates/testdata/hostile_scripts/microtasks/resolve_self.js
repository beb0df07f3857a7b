// promises that resolve with each other
// outcome: timeout

export default { async fetch() { const a = Promise.withResolvers(), b = Promise.withResolvers(); a.resolve(b.promise); b.resolve(a.promise); await a.promise; return new Response("ok"); } };
