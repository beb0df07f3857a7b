// ownKeys of a proxy with a million keys
// outcome: cpu
// strays

export default { fetch() { const keys = Array.from({ length: 1e6 }, (_, i) => "k" + i); for (;;) Reflect.ownKeys(new Proxy({}, { ownKeys: () => keys }));  } };
