// Headers with a million entries
// outcome: cpu, memory

export default { fetch() { const h = new Headers(); for (let i = 0; i < 1e6; i++) h.set("x-" + i, "v"); return new Response(String([...h].length)); } };
