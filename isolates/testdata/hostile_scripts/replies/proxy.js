// a Proxy of a Response
// outcome: exception

export default { fetch() { return new Proxy(new Response("x"), {}); } };
