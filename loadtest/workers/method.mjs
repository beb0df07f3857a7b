// order.mjs, and makes the receipt by a service call of a method.

import { WorkerEntrypoint } from "cloudflare:workers";

export class Receipts extends WorkerEntrypoint {
  make(id, user, items) {
    return { ok: true, id, user, items };
  }
}

export default {
  async fetch(request, env) {
    const order = await request.json();
    return Response.json(await env.RECEIPTS.make(order.id, order.user.name, order.items.length));
  },
};
