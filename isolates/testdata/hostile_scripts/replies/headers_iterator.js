// headers by an endless iterator
// outcome: cpu, memory, exception

export default { fetch() { return new Response("x", { headers: { *[Symbol.iterator]() { for (let i = 0;; i++) yield ["k" + i, "v"]; } } }); } };
