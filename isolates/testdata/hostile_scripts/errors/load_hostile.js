// a hostile object thrown while the module loads
// outcome: exception

throw new Proxy({}, { get() { throw 1; }, getPrototypeOf() { throw 1; }, ownKeys() { throw 1; } });
