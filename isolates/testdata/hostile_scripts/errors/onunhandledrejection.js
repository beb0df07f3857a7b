// an onunhandledrejection that rejects without end
// outcome: ok, cpu

export default { async fetch() { globalThis.onunhandledrejection = (e) => { e.preventDefault(); for (let i = 0; i < 2; i++) Promise.reject(i); }; Promise.reject(0); await new Promise((f) => setTimeout(f, 1000)); return new Response("ok"); } };
