// onIdle that loops
// outcome: ok
// mode: persistent
// events: 2

export default { fetch() { return new Response("ok"); }, onIdle() { for (;;); } };
