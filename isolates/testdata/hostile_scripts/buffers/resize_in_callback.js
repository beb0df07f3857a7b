// a buffer that shrinks while it is sorted, mapped and encoded
// outcome: ok

export default { fetch() { const b = new ArrayBuffer(1 << 12, { maxByteLength: 1 << 20 }); const v = new Uint8Array(b); v.map((x, i) => { if (i === 5) b.resize(8); return 1; }); b.resize(1 << 12); v.sort((x, y) => { b.resize(16); return x - y; }); for (const take of [() => new Blob([v]), () => new Response(v), () => crypto.getRandomValues(v), () => new TextDecoder().decode(v)]) { try { take(); } catch (e) { if (!(e instanceof TypeError)) throw e; } } return new Response("ok"); } };
