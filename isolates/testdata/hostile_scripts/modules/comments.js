// 20 MB of comments
// outcome: ok
// many: 2000000 xxxxxxxxx 

/*__MANY__*/
export default { fetch() { return new Response("ok"); } };
