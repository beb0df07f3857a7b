// Error.prepareStackTrace, to reach frames of the runtime
// outcome: ok

export default { fetch() { let leak = ""; Error.prepareStackTrace = (e, sites) => { for (const s of sites) { if (s.getFunction() !== undefined) leak += "function "; if (s.getThis() !== undefined) leak += "this "; if (typeof s.getEvalOrigin() === "object") leak += "origin "; } return sites; };
  new Headers({ *[Symbol.iterator]() { new Error("x").stack; } }); setTimeout(() => {}); try { new Response("x", { get status() { new Error("y").stack; throw new Error("z"); } }); } catch (e) { e.stack; }
  Error.stackTraceLimit = 1000; [1].map(() => new Error().stack); const t = new EventTarget(); t.addEventListener("x", () => new Error().stack); t.dispatchEvent(new Event("x")); return new Response(leak || "ok"); } };
