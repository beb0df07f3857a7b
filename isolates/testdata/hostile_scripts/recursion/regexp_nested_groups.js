// a regular expression nested 10,000 deep
// outcome: ok, cpu

export default { fetch() { new RegExp("(".repeat(1e4) + "a" + ")".repeat(1e4)).exec("a"); return new Response("ok"); } };
