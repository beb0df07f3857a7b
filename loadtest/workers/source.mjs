// Does what order.mjs does, and refuses an event that is not of the message that it says.

export default {
  task({ payload, source }) {
    if (source.sequence !== payload.id + 1) {
      throw new Error(`message ${source.sequence} has the order ${payload.id}`);
    }
    return { ok: true, id: payload.id, user: payload.user.name, items: payload.items.length };
  },
};
