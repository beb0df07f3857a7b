// 2n**(2n**30n)
// outcome: exception

export default { fetch() { return new Response(String((2n ** (2n ** 30n)).toString().length)); } };
