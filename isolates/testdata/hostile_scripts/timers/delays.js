// delays that are no numbers
// outcome: ok

export default { async fetch() { for (const d of [NaN, -1, Infinity, "x", undefined, null, 2 ** 31, 2 ** 53, 1e300]) await new Promise((done) => { const t = setTimeout(done, d); if (d >= 2 ** 31) { clearTimeout(t); done(); } }); return new Response("ok"); } };
