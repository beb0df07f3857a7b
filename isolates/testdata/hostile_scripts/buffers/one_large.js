// one buffer of 4 GB
// outcome: exception

export default { fetch() { new Uint8Array(2 ** 32); return new Response("had it"); } };
