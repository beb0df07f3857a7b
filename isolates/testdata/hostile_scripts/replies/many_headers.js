// more headers than a reply may have
// outcome: exception

export default { fetch() { const h = new Headers(); for (let i = 0; i < 200; i++) h.append("x-" + i, "v"); return new Response("ok", { headers: h }); } };
