// AbortSignal.any of the last, a hundred thousand times
// outcome: ok, cpu

export default { fetch() { const c = new AbortController(); let s = c.signal; for (let i = 0; i < 1e5; i++) s = AbortSignal.any([s]); c.abort(); return new Response("ok"); } };
