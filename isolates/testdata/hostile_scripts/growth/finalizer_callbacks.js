// finalizers that register again and loop, in later events
// outcome: ok, cpu
// events: 3

const r = new FinalizationRegistry((x) => { r.register({}, x); for (;;); });
export default { fetch() { for (let i = 0; i < 1e4; i++) r.register({}, i); return new Response("ok"); } };
