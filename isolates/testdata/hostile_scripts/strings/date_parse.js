// Date.parse of 16 MB
// outcome: ok

export default { fetch() { Date.parse("1 ".repeat(1 << 23)); return new Response("ok"); } };
