// import() of anything
// outcome: ok

export default { async fetch() {
  for (const name of ["fs", "node:fs", "data:text/javascript,1", "file:///etc/passwd", "http://127.0.0.1/", "./w.js", "", "pinwheel:runtime/events/entry.js", "x".repeat(1e6), { toString() { return "fs"; } }]) {
    try { await import(name); return new Response("imported"); } catch (e) { if (e.stack === undefined) throw e; }
  }
  try { await import("x", { with: { type: "json" } }); return new Response("imported"); } catch {}
  return new Response("ok");
} };
