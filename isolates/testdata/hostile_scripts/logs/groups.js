// groups without end
// outcome: ok

export default { fetch() { for (let i = 0; i < 1e4; i++) { console.group("g" + i); } console.log("a\n".repeat(1e4)); return new Response("ok"); } };
