// a chain of a million objects
// outcome: ok

export default { fetch() { let o = {}; for (let i = 0; i < 1e5; i++) o = { o }; console.log(o); console.log("%o", o); return new Response("ok"); } };
