// proxies of proxies
// outcome: memory, cpu

export default { fetch() { let p = {}; const a = []; for (;;) { p = new Proxy(p, {}); a.push(p); } } };
