// queueMicrotask in itself, twice
// outcome: ok, cpu, memory

export default { fetch() { const f = () => { queueMicrotask(f); queueMicrotask(f); }; f(); return new Response("ok"); } };
