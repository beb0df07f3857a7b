// module state that grows until the heap is full, at load
// outcome: memory, cpu
// load

const a = []; for (;;) a.push(new Array(1000).fill(1.5));
export default { fetch() { return new Response("ok"); } };
