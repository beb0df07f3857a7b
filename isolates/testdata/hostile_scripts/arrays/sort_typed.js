// a typed array as large as the limit, sorted by C++ that cannot be interrupted
// outcome: cpu, ok

export default { fetch() { const a = new Float64Array(6e6); crypto.getRandomValues(new Uint8Array(8)); for (let i = 0, x = 1; i < a.length; i += 64) a[i] = x = (x * 16807) % 2147483647; a.sort(); a.sort(); return new Response("ok"); } };
