// objects that contain each other
// outcome: ok

export default { fetch() { const a = { n: 1 }, b = [a]; a.b = b; a.m = new Map([[a, b]]); a.s = new Set([b, a]); console.log(a, b); console.table([a, b]); return new Response("ok"); } };
