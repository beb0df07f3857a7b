// a stream that nothing will ever feed
// outcome: timeout

export default { fetch() { return new Response(new ReadableStream({})); } };
