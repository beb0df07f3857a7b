// order.mjs, and reads 1 KB by a KV binding.

const receipt = (order) => ({ ok: true, id: order.id, user: order.user.name, items: order.items.length });
const value = "v".repeat(1024);

export default {
  async fetch(request, env) {
    const order = await request.json();
    const found = await env.KV.get("value");
    if (found === null) await env.KV.put("value", value);
    else if (found.length !== value.length) throw new Error("another value");
    return Response.json(receipt(order));
  },
};
