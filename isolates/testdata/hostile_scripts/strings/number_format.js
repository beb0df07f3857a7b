// a number of a million digits as a string, formatted
// outcome: ok, cpu

export default { fetch() { return new Response(new Intl.NumberFormat("de").format("1".repeat(1e6)) === "∞" ? "ok" : "no"); } };
