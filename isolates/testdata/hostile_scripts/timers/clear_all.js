// clearTimeout of a million numbers that are nobody's
// outcome: ok, cpu

export default { fetch() { for (let i = 0; i < 1e6; i++) clearTimeout(i); return new Response("ok"); } };
