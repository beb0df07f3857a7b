// objects with a million keys
// outcome: cpu, ok, memory
// strays

export default { fetch() { const o = {}; for (let i = 0; i < 2e4; i++) o["k" + i] = i; console.log(o, new Array(1e6).fill(o), new Uint8Array(1e7), new Map(Object.entries(o))); return new Response("ok"); } };
