// streams with full queues
// outcome: memory, cpu

export default { fetch() { const a = []; for (;;) a.push(new ReadableStream({ start(c) { for (let i = 0; i < 100; i++) c.enqueue(new Array(100)); } })); } };
