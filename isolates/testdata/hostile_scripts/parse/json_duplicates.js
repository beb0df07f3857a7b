// JSON with a million equal keys
// outcome: ok, cpu

export default { fetch() { JSON.parse("{" + `"a":1,`.repeat(1e6) + `"a":2}`); return new Response("ok"); } };
