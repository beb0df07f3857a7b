// functions nested 20,000 deep
// outcome: exception
// many: 20000 function f(){

__MANY__
export default { fetch() { return new Response("ok"); } };
