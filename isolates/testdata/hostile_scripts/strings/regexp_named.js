// a hundred thousand named groups
// outcome: exception, cpu

export default { fetch() { new RegExp(Array.from({ length: 1e5 }, (_, i) => `(?<n${i}>a)`).join("|")).exec("a"); return new Response("ok"); } };
