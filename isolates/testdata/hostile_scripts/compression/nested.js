// a thousand compressions inside each other
// outcome: exception, cpu

export default { async fetch() { let s = new Blob(["x"]).stream(); for (let i = 0; i < 1000; i++) s = s.pipeThrough(new CompressionStream("gzip")); await new Response(s).arrayBuffer(); return new Response("ok"); } };
