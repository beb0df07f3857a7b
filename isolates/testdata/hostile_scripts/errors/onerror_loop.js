// an onerror that throws again, and loops
// outcome: cpu

export default { async fetch() { globalThis.onerror = () => { throw new Error("again"); }; setTimeout(() => { throw new Error("first"); }, 1); await new Promise((f) => setTimeout(f, 20)); globalThis.onerror = () => { for (;;); }; reportError(1); return new Response("ok"); } };
