// promises that reject in finalizers
// outcome: ok, cpu

export default { async fetch() { const r = new FinalizationRegistry(() => { Promise.reject(1); }); for (let i = 0; i < 1e5; i++) r.register({}, i); await new Promise((f) => setTimeout(f, 50)); return new Response("ok"); } };
