// Iterator.from, mapped a hundred thousand times
// outcome: exception

export default { fetch() { let it = Iterator.from([1]); for (let i = 0; i < 1e5; i++) it = it.map((x) => x); it.next(); return new Response("ok"); } };
