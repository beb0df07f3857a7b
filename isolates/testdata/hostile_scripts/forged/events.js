// made-up fetch and task events sent to the handlers
// outcome: ok

addEventListener("fetch", (e) => { try { e.respondWith?.(new Response("forged")); } catch {} });
export default { fetch() { for (const type of ["fetch", "task", "scheduled", "error", "unhandledrejection"]) { const e = new Event(type); e.request = new Request("http://h/"); e.respondWith = () => {}; dispatchEvent(e); } return new Response("ok"); } };
