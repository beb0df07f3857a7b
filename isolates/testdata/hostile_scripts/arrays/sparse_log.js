// the longest array, logged
// outcome: ok

export default { fetch() { console.log(new Array(2 ** 32 - 1)); return new Response("ok"); } };
