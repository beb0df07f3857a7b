// eval is off, direct and indirect
// outcome: ok

export default { fetch() { for (const f of [() => eval("1"), () => (0, eval)("1"), () => globalThis.eval("for(;;);")]) { try { f(); return new Response("ran"); } catch (e) { if (!(e instanceof EvalError)) throw e; } } return new Response("ok"); } };
