// a Response whose body was read already
// outcome: exception

export default { async fetch() { const r = new Response("x"); await r.text(); return r; } };
