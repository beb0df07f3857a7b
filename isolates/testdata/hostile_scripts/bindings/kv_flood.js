// calls a binding without end and waits for none of the answers
// outcome: cpu, memory

export default {
  fetch(request, env) {
    for (;;) env.KV.get("never").catch(() => {});
  },
};
