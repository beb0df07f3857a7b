// calls a binding from a timer after the response, without end
// outcome: ok, timeout, cpu, memory
// mode: persistent
// cut

export default {
  fetch(request, env, ctx) {
    const again = () => { env.KV.get("k").then(again, again); };
    again();
    ctx.waitUntil(new Promise(() => {}));
    return new Response("ok");
  },
};
