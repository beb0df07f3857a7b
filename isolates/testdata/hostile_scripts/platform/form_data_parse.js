// multipart bodies of nothing but boundaries
// outcome: ok

export default { async fetch() { const t = "--b\r\n".repeat(5e5) + "--b--"; try { await new Response(t, { headers: { "content-type": "multipart/form-data; boundary=b" } }).formData(); } catch (e) { if (!(e instanceof TypeError)) throw e; } return new Response("ok"); } };
