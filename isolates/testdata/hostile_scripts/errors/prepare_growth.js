// prepareStackTrace that keeps every call site
// outcome: cpu, memory

export default { fetch() { const kept = []; Error.stackTraceLimit = 200; Error.prepareStackTrace = (e, sites) => { kept.push(sites, e); return sites; }; const g = (n) => n ? g(n - 1) : new Error("x").stack; for (;;) g(190); } };
