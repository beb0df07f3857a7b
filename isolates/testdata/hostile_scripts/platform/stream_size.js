// a queuing strategy whose size loops
// outcome: cpu

export default { fetch() { new ReadableStream({ start(c) { c.enqueue(1); } }, { size() { for (;;); } }); return new Response("ok"); } };
