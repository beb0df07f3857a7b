// case-insensitive search with Unicode over 32 MB
// outcome: ok, cpu

export default { fetch() { /ſtraße\b.*x/iu.test("STRASSE ".repeat(1 << 22)); return new Response("ok"); } };
