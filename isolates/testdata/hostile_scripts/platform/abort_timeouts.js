// a hundred thousand AbortSignal.timeout
// outcome: memory, cpu

export default { fetch() { const a = []; for (let i = 0; i < 1e5; i++) a.push(AbortSignal.timeout(1e6)); return new Response("ok"); } };
