// a comparator that empties the array it sorts
// outcome: ok

export default { fetch() { const a = Array.from({ length: 1e5 }, (_, i) => i); a.sort((x, y) => { a.length = 0; for (let i = 0; i < 10; i++) a.push({}); return x - y; }); return new Response("ok"); } };
