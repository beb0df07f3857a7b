// a storm of unhandled rejections
// outcome: cpu, memory, ok

export default { fetch() { for (let i = 0; i < 2e5; i++) Promise.reject(new Error("no " + i)); return new Response("ok"); } };
