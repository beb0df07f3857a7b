// a thousand EventSources to where there is nothing
// outcome: ok, cpu, exception

export default { async fetch() { const a = []; for (let i = 0; i < 1000; i++) a.push(new EventSource("http://127.0.0.1:1/")); await new Promise((f) => setTimeout(f, 50)); for (const s of a) s.close(); return new Response("ok"); } };
