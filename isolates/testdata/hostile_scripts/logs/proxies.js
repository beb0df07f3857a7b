// proxies whose traps never return
// outcome: ok

export default { fetch() { const t = new Proxy({}, { get: () => () => { for (;;); } }); for (const p of [new Proxy({}, t), new Proxy([], t), new Proxy(() => {}, t), new Proxy(new Error("x"), t), new Proxy(new Map(), t), new Proxy(class {}, t)]) { console.log(p); console.log("%s %o %O %j", p, p, p, p); console.table(p); console.dir(p); } return new Response("ok"); } };
