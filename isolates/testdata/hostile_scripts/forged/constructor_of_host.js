// constructor.constructor of natives and of whatever is thrown
// outcome: ok

export default { async fetch(r, env, ctx) { const tried = []; const go = (v) => { try { const F = v.constructor.constructor; F("return this")(); tried.push(v); } catch {} }; for (const v of [r, env, ctx, fetch, console.log, crypto, performance, setTimeout, new Headers()]) go(v); for (const f of [() => fetch(), () => new URL("x"), () => atob("="), () => crypto.getRandomValues(1), () => structuredClone(() => {}), () => new Response("x", { status: 1 })]) { try { await f(); } catch (e) { go(e); } } return new Response(tried.length ? "ran" : "ok"); } };
