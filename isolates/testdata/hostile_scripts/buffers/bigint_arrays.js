// BigInt64Array of the largest size, sorted
// outcome: ok, cpu

export default { fetch() { const a = new BigInt64Array(7 << 20); for (let i = 0; i < a.length; i += 1000) a[i] = BigInt(i) ** 3n; a.sort(); return new Response("ok"); } };
