// getRandomValues beyond its quota, then within it for ever
// outcome: cpu, exception

export default { fetch() { try { crypto.getRandomValues(new Uint8Array(65537)); return new Response("took it"); } catch (e) { if (e.name !== "QuotaExceededError") throw e; } const b = new Uint8Array(65536); for (;;) crypto.getRandomValues(b); } };
