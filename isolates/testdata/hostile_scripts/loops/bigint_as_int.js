// BigInt.asUintN and shifts at the limits
// outcome: ok

export default { fetch() { try { BigInt.asUintN(2 ** 53 - 1, -1n); } catch {} try { 1n << (2n ** 64n); } catch {} return new Response("ok"); } };
