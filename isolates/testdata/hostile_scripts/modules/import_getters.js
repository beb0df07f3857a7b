// dynamic import of an object whose toString loops
// outcome: cpu

export default { async fetch() { await import({ toString() { for (;;); } }); return new Response("ok"); } };
