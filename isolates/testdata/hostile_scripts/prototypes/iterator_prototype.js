// the iterator prototypes, emptied and looping
// outcome: ok
// events: 2

export default { fetch() { const ip = Object.getPrototypeOf(Object.getPrototypeOf([][Symbol.iterator]())); Object.getPrototypeOf([][Symbol.iterator]()).next = () => ({ done: false, value: 1 }); ip[Symbol.iterator] = () => { throw 1; }; const h = new Headers({ a: "b" }); new URL("http://x/?a=b").searchParams.get("a"); return new Response("ok", { headers: h }); } };
