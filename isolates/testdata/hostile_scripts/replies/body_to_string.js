// a body whose toString loops
// outcome: cpu

export default { fetch() { return new Response({ toString() { for (;;); } }); } };
