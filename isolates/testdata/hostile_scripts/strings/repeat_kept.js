// half a gigabyte by repeat, flattened and kept
// outcome: cpu, memory, exception
// strays

export default { fetch() { const a = []; for (let i = 0; i < 64; i++) { const s = "0123456789".repeat(5e7); s.indexOf("z"); a.push(s); } return new Response("ok"); } };
