// format strings of a million directives
// outcome: cpu

export default { fetch() { console.log("%s%o%d".repeat(3e5), ...Array.from({ length: 1e4 }, () => ({}))); return new Response("ok"); } };
