// a thousand cookies
// outcome: exception

export default { fetch() { const h = new Headers(); for (let i = 0; i < 1000; i++) h.append("set-cookie", "c" + i + "=" + "v".repeat(100)); return new Response("ok", { headers: h }); } };
