// arrays nested a hundred thousand deep as a string
// outcome: exception

export default { fetch() { let a = []; for (let i = 0; i < 1e5; i++) a = [a]; return new Response(String(a)); } };
