// a body that is transferred away after it was given
// outcome: ok

export default { fetch() { const u = new Uint8Array([111, 107]); const res = new Response(u); u.buffer.transfer(); return res; } };
