// line ends in header names, values and the status text
// outcome: ok

export default { fetch() { for (const h of [{ "a\r\nb": "c" }, { a: "b\r\nc: d" }, { a: "b\nc" }, { "": "x" }, { "a:b": "x" }, { a: "\0" }]) { try { new Response("x", { headers: h }); return new Response("took it"); } catch (e) { if (!(e instanceof TypeError)) throw e; } } try { new Response("x", { statusText: "a\r\nb: c" }); return new Response("took it"); } catch {} return new Response("ok"); } };
