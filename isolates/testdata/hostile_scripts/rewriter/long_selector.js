// selectors of a megabyte
// outcome: ok

export default { fetch() { let n = 0; for (const s of ["a ".repeat(1 << 19), ":not(".repeat(1 << 18), "[a".repeat(1 << 19), "\\\\".repeat(1 << 19), "/*".repeat(1 << 19), "a,".repeat(1 << 19)]) { try { new HTMLRewriter().on(s, {}); } catch (e) { if (e instanceof TypeError && e.message.length < 300) n++; } } return new Response(n === 6 ? "ok" : String(n)); } };
