// objects whose prototype is a Proxy
// outcome: ok

export default { fetch() { const p = new Proxy({}, { get() { for (;;); }, getPrototypeOf() { for (;;); }, getOwnPropertyDescriptor() { for (;;); }, ownKeys() { for (;;); } }); const e = new Error("x"); Object.setPrototypeOf(e, p); console.log(Object.create(p), e); return new Response("ok"); } };
