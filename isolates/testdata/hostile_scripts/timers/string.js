// a timer whose handler is a string of code
// outcome: ok

export default { async fetch() { try { setTimeout("globalThis.ran = 1", 0); } catch {} await new Promise((f) => setTimeout(f, 20)); return new Response(globalThis.ran ? "ran" : "ok"); } };
