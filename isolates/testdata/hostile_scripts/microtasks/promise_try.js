// Promise.try that calls itself
// outcome: exception

export default { fetch() { const g = () => Promise.try(g); return g(); } };
