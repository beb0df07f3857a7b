// blobs of blobs
// outcome: memory, cpu, exception

export default { fetch() { let b = new Blob(["x".repeat(1000)]); for (;;) b = new Blob([b, b]); } };
