// brackets nested 100,000 deep
// outcome: exception
// many: 100000 [

const a = __MANY__0;
export default { fetch() { return new Response("ok"); } };
