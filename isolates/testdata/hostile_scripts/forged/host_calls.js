// every property of every builtin called with the numbers of commands
// outcome: ok
// events: 2

export default { fetch(r, env, ctx) { const seen = new Set(); const walk = (o, d) => { if (d > 3 || o === null || (typeof o !== "object" && typeof o !== "function") || seen.has(o)) return; seen.add(o); for (const k of Reflect.ownKeys(o)) { let v; try { v = o[k]; } catch { continue; } if (typeof v === "function" && !/^(fetch|setTimeout|setInterval|addEventListener|dispatchEvent|reportError|queueMicrotask)$/.test(String(k))) for (const n of [1, 2, 3]) try { Reflect.apply(v, o, [n, 0, "x", true]); } catch {} walk(v, d + 1); } }; walk(r, 0); walk(ctx, 0); return new Response("ok"); } };
