// prepareStackTrace that breaks async frames of the runtime
// outcome: ok

export default { async fetch() { Error.prepareStackTrace = (e, sites) => { for (const s of sites) { s.getThis?.(); s.getFunction?.(); s.getEvalOrigin?.(); } throw 1; }; try { await fetch("http://127.0.0.1:1/"); } catch {} return new Response("ok"); } };
