// a body stream that fails with a hostile error
// outcome: exception

export default { fetch() { return new Response(new ReadableStream({ pull(c) { c.error(new Proxy(new Error("x"), { get() { for (;;); } })); } })); } };
