// scheduler.wait by the million
// outcome: memory, cpu

export default { async fetch() { await Promise.all(Array.from({ length: 1e6 }, () => scheduler.wait(1))); return new Response("ok"); } };
