// a status whose valueOf never returns
// outcome: cpu

export default { fetch() { return new Response("x", { status: { valueOf() { for (;;); } } }); } };
