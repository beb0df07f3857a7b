// exec with the sticky flag over 64 MB, again and again
// outcome: cpu, memory

export default { fetch() { const s = "a".repeat(1 << 26), e = /b/g; for (;;) e.exec(s); } };
