// the longest array as JSON
// outcome: exception

export default { fetch() { return Response.json(new Array(2 ** 32 - 1)); } };
