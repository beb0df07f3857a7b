// methods of the runtime called on other objects
// outcome: ok

export default { fetch(request, env, ctx) { for (const o of [ctx, request, new Headers(), new URL("http://h/"), new ReadableStream(), AbortSignal.abort()]) { const p = Object.getPrototypeOf(o); for (const k of Reflect.ownKeys(p)) { const d = Reflect.getOwnPropertyDescriptor(p, k); for (const f of [d.value, d.get, d.set]) if (typeof f === "function" && k !== "constructor") for (const self of [undefined, null, {}, Object.create(p), new Proxy(o, {}), globalThis]) { try { const r = f.call(self, 1, 2); if (r && typeof r.then === "function") r.then(() => {}, () => {}); } catch {} } } } return new Response("ok"); } };
