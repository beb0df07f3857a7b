// atob of nothing but blanks
// outcome: cpu, memory, exception, ok

export default { fetch() { atob(" ".repeat(1 << 24)); return new Response("ok"); } };
