// decompression of what is nothing of the sort
// outcome: ok

export default { async fetch() { try { await new Response(new Blob([new Uint8Array(1 << 20)]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer(); } catch (e) { return new Response("ok"); } return new Response("had it"); } };
