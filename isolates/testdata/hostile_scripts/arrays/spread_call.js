// Math.max of a spread array of 2**26
// outcome: cpu, memory, exception

export default { fetch() { const a = new Array(2 ** 22).fill(1); const b = []; for (let i = 0; i < 16; i++) b.push(...a.slice(0, 60000)); return new Response(String(Math.max(...new Array(2 ** 26)))); } };
