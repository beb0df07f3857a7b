// a module of 6 MB of functions
// outcome: ok, cpu
// load
// many: 100000 export function f$i(x) { return x + $i; } 

__MANY__
export default { fetch() { return new Response("ok"); } };
