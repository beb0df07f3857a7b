// toLocaleString of a BigInt of a million bits
// outcome: ok, cpu

export default { fetch() { return new Response((10n ** 300000n).toLocaleString("de").length === 400001 ? "ok" : "no"); } };
