// every global replaced by one that throws
// outcome: ok
// events: 2

const R = Response;
export default { fetch() { const boom = function () { throw new Error("mine"); }; for (const k of Object.getOwnPropertyNames(globalThis)) if (k !== "globalThis") try { globalThis[k] = boom; } catch {} return new R("ok"); } };
