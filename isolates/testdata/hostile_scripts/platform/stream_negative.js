// queuing strategies of every bad size
// outcome: ok

export default { fetch() { let n = 0; for (const v of [-1, NaN, Infinity, 1n, {}, "x"]) try { new ReadableStream({ start(c) { c.enqueue(1); } }, { size: () => v }); } catch { n++; } return new Response("ok"); } };
