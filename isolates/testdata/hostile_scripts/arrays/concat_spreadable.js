// concat of an array-like of length 2**32
// outcome: ok

export default { fetch() { [].concat({ length: 2 ** 32, [Symbol.isConcatSpreadable]: true }); return new Response("ok"); } };
