// callers reached by arguments.callee and Function.caller
// outcome: ok

export default { fetch() { const seen = []; const spy = Function.prototype; for (const k of ["caller", "arguments"]) { try { const d = Reflect.getOwnPropertyDescriptor(spy, k); seen.push(d?.get?.call(spy)); } catch {} } (function f() { try { seen.push(f.caller); } catch {} try { seen.push(arguments.callee); } catch {} })(); new EventTarget().addEventListener({ toString: function g() { try { seen.push(g.caller); } catch {} return "x"; } }, null); return new Response(seen.some((x) => x) ? "saw" : "ok"); } };
