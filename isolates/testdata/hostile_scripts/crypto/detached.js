// data that is transferred away while its algorithm is read
// outcome: ok

export default { async fetch() { const b = new ArrayBuffer(1 << 16); try { await crypto.subtle.digest({ get name() { b.transfer(); return "SHA-256"; } }, b); } catch {} return new Response("ok"); } };
