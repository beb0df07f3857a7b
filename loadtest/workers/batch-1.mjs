// Writes orders to a slow server, as many as it gets at once: one. batch-100.mjs is the same in batches of 100.

export default {
  async queue(batch, env) {
    const orders = batch.messages.map((message) => message.body);
    const answer = await fetch(env.SLOW_URL, { method: "POST", body: JSON.stringify(orders) });
    await answer.text();
  },
};
