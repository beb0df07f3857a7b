// a buffer that shrinks while it is sorted, mapped and encoded
// outcome: ok

export default { fetch() { const b = new ArrayBuffer(1 << 12, { maxByteLength: 1 << 20 }); const v = new Uint8Array(b); v.map((x, i) => { if (i === 5) b.resize(8); return 1; }); b.resize(1 << 12); v.sort((x, y) => { b.resize(16); return x - y; }); new Blob([v]); new Response(v); crypto.getRandomValues(v); new TextDecoder().decode(v); return new Response("ok"); } };
