// a body cloned a thousand times, never read
// outcome: ok

export default { fetch() { let r0 = new Response("x".repeat(1 << 16)); const a = []; for (let i = 0; i < 5000; i++) a.push(r0.clone()); return new Response("ok"); } };
