// a hundred thousand times not
// outcome: exception
// many: 100000 !

const a = __MANY__1;
export default { fetch() { return new Response("ok"); } };
