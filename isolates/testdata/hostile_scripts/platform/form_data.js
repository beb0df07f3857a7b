// FormData with a million entries, written out
// outcome: cpu, memory, exception

export default { async fetch() { const f = new FormData(); for (let i = 0; i < 1e6; i++) f.append("n" + i, "v".repeat(10)); return new Response(await new Response(f).text()); } };
