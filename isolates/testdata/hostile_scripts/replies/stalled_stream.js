// a stream that never goes on
// outcome: timeout

export default { fetch() { return new Response(new ReadableStream({ pull() { return new Promise((done) => setInterval(() => {}, 100)); } })); } };
