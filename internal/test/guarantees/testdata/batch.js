// Does with each message what its content says, in one of several ways, and tells the test of each run of a message and
// of each that it handled. What becomes of a message depends on its content and its attempt only, not on the others.
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

// fails reports whether this run of a message must not be its last.
function fails({ body, attempts }) {
  switch (body.what) {
    case "again": return attempts < 2;
    case "twice": return attempts < 3;
    case "poison": return true;
  }
  return false; // "fine", and "blind", about which the handler decides nothing when it can
}

const ways = {
  each({ plain, failed }) {
    for (const m of plain) {
      m.ack();
      m.retry(); // the first call holds
    }
    failed.forEach((m, i) => m.retry({ delaySeconds: i * 0.05 }));
  },
  ackAll({ batch, failed }) {
    for (const m of failed) m.retry({ delaySeconds: 0.1 });
    batch.ackAll();
  },
  retryAll({ batch, plain, blind }) {
    for (const m of [...plain, ...blind]) m.ack();
    batch.retryAll({ delaySeconds: 0.2 });
  },
  named({ failed }) {
    return { batchItemFailures: failed.map((m) => ({ itemIdentifier: m.id })) };
  },
  // In these two a blind message fails with the others, and runs alone then.
  throws({ plain, failed }) {
    for (const m of plain) m.ack();
    if (failed.length > 0) throw new Error("no");
  },
  rejects({ plain, failed, ctx }) {
    for (const m of plain) m.ack();
    if (failed.length > 0) ctx.waitUntil(Promise.reject(new Error("no")));
  },
};

// Most often a batch fails as a whole: messages that stayed together would fail together until they are dead.
const order = ["each", "throws", "ackAll", "throws", "retryAll", "throws", "named", "throws", "rejects"];

export default {
  async queue(batch, env, ctx) {
    const tell = (fact, messages) => fetch(`${env.TEST}/batch/${fact}`, {
      method: "POST", body: JSON.stringify(messages.map((m) => ({ id: m.body.id, attempt: m.attempts }))),
    }).then((r) => r.text());
    await tell("ran", batch.messages);
    const failed = batch.messages.filter(fails);
    const handled = batch.messages.filter((m) => !fails(m));
    const blind = handled.filter((m) => m.body.what === "blind");
    const plain = handled.filter((m) => m.body.what !== "blind");
    const way = order[Number(batch.messages[0].body.id.slice(1)) % order.length];
    const whole = failed.length === 0 || !["throws", "rejects"].includes(way);
    await sleep(50 * Math.random());
    await tell("done", whole ? handled : plain);
    return ways[way]({ batch, ctx, plain, blind, failed });
  },
};
