// Reads an order and answers with a receipt. The peers run this very file.

const receipt = (order) => ({ ok: true, id: order.id, user: order.user.name, items: order.items.length });

export default {
  async fetch(request) {
    return Response.json(receipt(await request.json()));
  },
  task(event) {
    return receipt(event.payload);
  },
};
