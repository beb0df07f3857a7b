// every global replaced by one that throws
// outcome: ok
// events: 2

const R = Response, names = Object.getOwnPropertyNames(globalThis);
export default { fetch() { const boom = function () { throw new Error("mine"); }; for (const k of names) if (k !== "globalThis") try { globalThis[k] = boom; } catch {} return new R("ok"); } };
