// a handler whose this and prototype are gone
// outcome: ok

const h = Object.create(null); h.fetch = () => new Response("ok"); export default Object.freeze(h);
