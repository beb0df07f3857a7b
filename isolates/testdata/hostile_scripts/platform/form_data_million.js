// FormData of a million entries as a body
// outcome: cpu, memory

export default { async fetch() { const d = new FormData(); for (let i = 0; i < 1e6; i++) d.append("k" + i, "v"); return new Response(await new Response(d).text()); } };
