// abort with a reason that loops when it is read
// outcome: cpu

export default { async fetch() { const c = new AbortController(); c.abort(new Proxy({}, { get() { for (;;); } })); try { await fetch("http://x.test/", { signal: c.signal }); } catch (e) { e.message; } return new Response("ok"); } };
