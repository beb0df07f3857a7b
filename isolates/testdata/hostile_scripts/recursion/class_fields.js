// a class whose field makes another
// outcome: exception

export default { fetch() { class C { c = new C(); } new C(); return new Response("ok"); } };
