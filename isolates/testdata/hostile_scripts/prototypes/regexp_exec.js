// RegExp.prototype.exec and Symbol.replace, replaced
// outcome: ok
// events: 2

export default { fetch() { RegExp.prototype.exec = () => { for (;;); }; RegExp.prototype[Symbol.replace] = () => { for (;;); }; RegExp.prototype.test = () => { for (;;); }; String.prototype.replace = () => { for (;;); }; new URL("http://a.b/c?d"); new Headers({ "content-type": "text/html; charset=x" }).get("content-type"); return new Response("ok", { headers: { "content-type": "text/plain;charset=utf-8" } }); } };
