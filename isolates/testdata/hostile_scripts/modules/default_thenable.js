// a default export with a then that loops
// outcome: ok

export default { then(f) { for (;;); }, fetch() { return new Response("ok"); } };
