// a default export whose fetch is a getter that gives another each time
// outcome: ok
// events: 3

let n = 0; export default { get fetch() { n++; return n % 2 ? () => new Response("ok") : undefined; } };
