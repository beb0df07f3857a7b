// a status whose valueOf is asked again and again
// outcome: ok

export default { fetch() { let n = 0; return new Response("ok", { status: { valueOf() { n++; return n > 1 ? 999 : 200; } } }); } };
