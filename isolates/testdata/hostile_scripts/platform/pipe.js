// an endless pipe through ten transforms
// outcome: cpu, memory

export default { async fetch() { let s = new ReadableStream({ pull(c) { c.enqueue("x"); } }); for (let i = 0; i < 10; i++) s = s.pipeThrough(new TransformStream()); await s.pipeTo(new WritableStream()); } };
