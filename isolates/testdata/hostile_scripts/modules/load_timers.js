// a thousand timers started at load
// outcome: ok

for (let i = 0; i < 1000; i++) setTimeout(() => { for (;;); }, 50);
export default { fetch() { return new Response("ok"); } };
