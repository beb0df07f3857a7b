// the longest array as a string
// outcome: exception

export default { fetch() { return new Response(String(new Array(2 ** 32 - 1))); } };
