// proxies of proxies
// outcome: cpu, memory

export default { fetch() { let p = {}; const a = []; for (;;) { p = new Proxy(p, {}); a.push(p); } } };
