// top-level await of a fetch that is refused
// outcome: ok

let failed = false; try { await fetch("http://127.0.0.1:1/"); } catch { failed = true; }
export default { fetch() { return new Response(failed ? "ok" : "no"); } };
