// atob and btoa of 32 MB
// outcome: cpu, memory, exception, ok

export default { fetch() { atob(btoa("x".repeat(1 << 25))); return new Response("ok"); } };
