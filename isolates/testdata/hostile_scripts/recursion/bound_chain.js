// a function bound a million times, called
// outcome: ok, exception, cpu, memory

export default { fetch() { let f = () => 1; for (let i = 0; i < 5e5; i++) f = f.bind(null); f(); return new Response("ok"); } };
