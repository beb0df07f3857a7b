// a property read through a hundred thousand proxies
// outcome: exception

export default { fetch() { let p = {}; for (let i = 0; i < 1e5; i++) p = new Proxy(p, {}); p.x; return new Response("ok"); } };
