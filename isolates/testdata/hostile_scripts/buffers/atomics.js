// Atomics is not there: nothing can block a thread
// outcome: ok

export default { fetch() { try { Atomics.wait(new Int32Array(4), 0, 0); } catch (e) { if (e instanceof ReferenceError) return new Response("ok"); } return new Response("had it"); } };
