// a blob of 64 MB, sliced and read
// outcome: exception, cpu, memory

export default { async fetch() { const b = new Blob(new Array(60).fill("x".repeat(1 << 20))); const a = []; for (;;) a.push(await b.slice(1).bytes()); } };
