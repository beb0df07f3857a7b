// a blob sliced a million times
// outcome: cpu, memory

export default { fetch() { let b = new Blob(["x".repeat(1 << 20)]); const a = []; for (;;) a.push(b = b.slice(0, b.size));  } };
