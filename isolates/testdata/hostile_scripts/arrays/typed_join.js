// join of the largest typed array
// outcome: cpu

export default { fetch() { return new Response(new Uint8Array(60 << 20).join("xxxxxxxx")); } };
