// Error.prepareStackTrace that returns the frames, a number, a Proxy
// outcome: exception

export default { fetch() { Error.prepareStackTrace = (e, sites) => new Proxy(sites, { get() { for (;;); } }); throw new Error("x"); } };
