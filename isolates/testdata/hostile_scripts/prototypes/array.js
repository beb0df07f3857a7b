// every method of Array.prototype and its iterator replaced
// outcome: ok
// events: 2

export default { fetch(r) { const keys = Reflect.ownKeys(Array.prototype); for (let i = 0; i < keys.length; i++) if (typeof Array.prototype[keys[i]] === "function") Array.prototype[keys[i]] = () => { throw new Error("mine"); }; void r.headers.get("x"); return new Response("ok", { headers: { a: "b" } }); } };
