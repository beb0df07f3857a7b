// an endless loop of awaits beside the reply, in the same turn: the reply stands
// outcome: ok

export default { fetch() { (async () => { for (;;) await null; })(); return new Response("ok"); } };
