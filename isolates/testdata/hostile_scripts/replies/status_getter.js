// a status that is a number only at the second look
// outcome: ok

export default { fetch() { let n = 0; return new Response("ok", { get status() { return n++ ? 99999 : 200; } }); } };
