// a million lines
// outcome: cpu, memory, exception, ok

export default { fetch() { for (let i = 0; i < 1e6; i++) console.log("line", i); return new Response("ok"); } };
