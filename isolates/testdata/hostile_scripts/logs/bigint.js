// a BigInt of a million digits, logged
// outcome: ok

export default { fetch() { console.log(10n ** 300000n); return new Response("ok"); } };
