// fifty thousand exports
// outcome: ok, cpu
// load
// many: 50000 export const e$i = $i; 

__MANY__
export default { fetch() { return new Response("ok"); } };
