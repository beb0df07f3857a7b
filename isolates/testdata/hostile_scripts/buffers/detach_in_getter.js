// a buffer that is transferred away by the options that go with it
// outcome: ok

export default { fetch() { const b = new ArrayBuffer(64); try { new TextDecoder().decode(b, { get stream() { b.transfer(); return false; } }); } catch {} try { structuredClone(b, { get transfer() { b.transfer?.(); return []; } }); } catch {} return new Response("ok"); } };
