// template literals nested 20,000 deep
// outcome: exception
// many: 20000 `${

const a = __MANY__
export default { fetch() { return new Response("ok"); } };
