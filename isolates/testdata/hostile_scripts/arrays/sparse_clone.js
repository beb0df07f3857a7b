// structuredClone of the longest array
// outcome: ok

export default { fetch() { structuredClone(new Array(2 ** 32 - 1)); return new Response("ok"); } };
