// everything frozen
// outcome: ok
// events: 2

export default { fetch() { const seen = new Set(); const f = (o) => { if ((typeof o !== "object" && typeof o !== "function") || o === null || seen.has(o)) return; seen.add(o); try { Object.freeze(o); } catch {} for (const k of Reflect.ownKeys(o)) { const d = Reflect.getOwnPropertyDescriptor(o, k); f(d.value); f(d.get); f(d.set); } f(Object.getPrototypeOf(o)); }; f(globalThis); return new Response("ok"); } };
