// a signal with a hundred thousand dependants, aborted
// outcome: cpu, memory, exception, ok

export default { fetch() { const c = new AbortController(); const all = []; for (let i = 0; i < 1e5; i++) { const s = AbortSignal.any([c.signal]); s.addEventListener("abort", () => {}); all.push(s); } c.abort(); return new Response("ok"); } };
