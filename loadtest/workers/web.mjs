// Reads an order and answers with a receipt that names the host which was asked. The peers of loadtest http run this very file.

export default {
  async fetch(request) {
    const order = await request.json();
    return Response.json({ ok: true, id: order.id, user: order.user.name, items: order.items.length, host: request.headers.get("host") });
  },
};
