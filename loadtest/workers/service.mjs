// order.mjs, and makes the receipt by a service call of fetch.

const receipt = ({ id, user, items }) => ({ ok: true, id, user, items });

export default {
  async fetch(request, env) {
    const order = await request.json();
    if (new URL(request.url).pathname === "/receipt") return Response.json(receipt(order));
    const body = JSON.stringify({ id: order.id, user: order.user.name, items: order.items.length });
    return env.SELF.fetch("http://self.test/receipt", { method: "POST", body });
  },
};
