// atob of nothing but blanks
// outcome: cpu, ok, memory, exception

export default { fetch() { atob(" ".repeat(1 << 24)); return new Response("ok"); } };
