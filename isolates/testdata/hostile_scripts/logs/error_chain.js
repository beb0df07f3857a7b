// an error with a hundred thousand causes, logged
// outcome: cpu

export default { fetch() { let e = new Error("x"); for (let i = 0; i < 1e5; i++) e = new Error("x", { cause: e }); console.error(e); return new Response("ok"); } };
