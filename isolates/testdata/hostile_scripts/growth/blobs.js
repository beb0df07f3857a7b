// blobs of blobs
// outcome: exception, cpu, memory

export default { fetch() { let b = new Blob(["x".repeat(1000)]); for (;;) b = new Blob([b, b]); } };
