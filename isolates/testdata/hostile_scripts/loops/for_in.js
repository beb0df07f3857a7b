// for…in over a large object, again and again
// outcome: cpu

export default { fetch() { const o = {}; for (let i = 0; i < 1e4; i++) o["k" + i] = i; for (;;) for (const k in o) void k; } };
