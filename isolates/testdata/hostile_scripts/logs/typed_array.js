// a typed array of 60 MB, logged
// outcome: ok, cpu

export default { fetch() { console.log(new Uint8Array(60 << 20)); return new Response("ok"); } };
