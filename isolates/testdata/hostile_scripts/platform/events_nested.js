// a listener that dispatches
// outcome: ok

export default { fetch() { const t = new EventTarget(); t.addEventListener("x", () => t.dispatchEvent(new Event("x"))); t.dispatchEvent(new Event("x")); return new Response("ok"); } };
