// fetches that nobody waits for, in every event
// outcome: ok, exception
// events: 5

export default { fetch() { for (let i = 0; i < 40; i++) fetch("http://10.0.0.1/" + i); return new Response("ok"); } };
