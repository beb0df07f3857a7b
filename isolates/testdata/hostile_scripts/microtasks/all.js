// Promise.all, race and any of a million
// outcome: cpu, memory, ok

export default { async fetch() { await Promise.all(Promise.race(new Array(1e6).fill(1)) && new Array(1e6).fill(1)); return new Response("ok"); } };
