// timers left behind by each event
// outcome: ok
// events: 20

export default { fetch() { for (let i = 0; i < 500; i++) { setTimeout(() => { for (;;); }, 1); setInterval(() => { for (;;); }, 2); } return new Response("ok"); } };
