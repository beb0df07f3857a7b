// intervals and loops that events leave behind
// outcome: ok
// mode: persistent
// events: 10

export default { async fetch() { setInterval(() => { for (let i = 0; i < 1e6; i++); }, 1); (async () => { for (;;) await new Promise((f) => setTimeout(f, 1)); })(); return new Response("ok"); } };
