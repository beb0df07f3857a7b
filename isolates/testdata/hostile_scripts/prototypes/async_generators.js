// the async generator prototype, replaced
// outcome: ok
// events: 2

export default { fetch() { const ap = Object.getPrototypeOf((async function* () {}).prototype); ap.next = () => new Promise(() => {}); ap.return = () => { for (;;); }; return new Response("ok"); } };
