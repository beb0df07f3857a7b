// rejections handled late by the hundred thousand
// outcome: ok, cpu, memory

export default { async fetch() { globalThis.onrejectionhandled = () => { throw 1; }; const a = Array.from({ length: 1e5 }, (_, i) => Promise.reject(i)); await new Promise((f) => setTimeout(f, 5)); for (const p of a) p.catch(() => {}); await new Promise((f) => setTimeout(f, 5)); return new Response("ok"); } };
