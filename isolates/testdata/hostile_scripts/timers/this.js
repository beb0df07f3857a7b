// timers whose delays are proxies and BigInts
// outcome: ok

export default { fetch() { let n = 0; for (const d of [new Proxy({}, { get() { throw 1; } }), 1n, Symbol("x"), -1, NaN, 2 ** 53]) try { setTimeout(() => {}, d); } catch { n++; } return new Response("ok"); } };
