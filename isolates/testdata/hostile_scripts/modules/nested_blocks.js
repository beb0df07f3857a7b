// blocks nested 100,000 deep
// outcome: exception
// many: 100000 {

__MANY__
export default { fetch() { return new Response("ok"); } };
