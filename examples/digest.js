// Makes one mail for each user of many notifications: a queue handler gets them in batches.
//
//   pinwheel send task dev/digest --data '{"user":"ada","text":"3 new comments"}'

export default {
  async queue(batch, env) {
    const byUser = new Map();
    for (const message of batch.messages) {
      const user = message.body?.user;
      if (typeof user !== "string") {
        console.warn(`notification ${message.id} has no user`);
        message.ack(); // it will not be better the next time
        continue;
      }
      if (!byUser.has(user)) byUser.set(user, []);
      byUser.get(user).push(message);
    }
    for (const [user, messages] of byUser) {
      try {
        await env.MAIL.send({ to: user, lines: messages.map((message) => message.body.text) });
        for (const message of messages) message.ack();
      } catch (error) {
        console.warn(`no mail for ${user}: ${error.message}`);
        for (const message of messages) message.retry({ delaySeconds: 30 });
      }
    }
  },
};
