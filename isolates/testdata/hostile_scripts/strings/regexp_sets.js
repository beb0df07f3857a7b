// a class of 100,000 strings with the v flag
// outcome: ok, cpu

export default { fetch() { const list = Array.from({ length: 1e5 }, (_, i) => "ab" + i).join("|"); new RegExp("[\\q{" + list + "}]", "v").test("ab7"); return new Response("ok"); } };
