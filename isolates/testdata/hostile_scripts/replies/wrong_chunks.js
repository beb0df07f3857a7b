// a stream of things that are not bytes
// outcome: exception

export default { fetch() { return new Response(new ReadableStream({ start(c) { c.enqueue({ length: 5, buffer: {} }); c.close(); } })); } };
