// transfer lists with the same buffer a million times
// outcome: exception, cpu

export default { fetch() { const b = new ArrayBuffer(8); structuredClone(b, { transfer: Array.from({ length: 1e6 }, () => b) }); return new Response("ok"); } };
