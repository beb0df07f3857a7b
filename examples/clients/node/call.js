// Calls a worker from Node: a plain NATS request, no library of ours.
//
//   node call.js [owner/worker] [name]

import { connect, headers } from "@nats-io/transport-node";

const [target = "dev/hello", name = "Ada"] = process.argv.slice(2);
const [owner, worker] = target.split("/");

// The library takes a server without credentials, so they are taken out of a URL that has some: nats://USER:PASSWORD@HOST or nats://TOKEN@HOST.
const url = new URL(process.env.NATS_URL ?? "nats://127.0.0.1:4222");
const [user, pass] = [decodeURIComponent(url.username), decodeURIComponent(url.password)];
const nc = await connect({
  servers: url.host,
  ...(pass !== "" ? { user, pass } : user !== "" ? { token: user } : {}),
  // Inboxes of the owner's own: with users of NATS it may read no others.
  inboxPrefix: `_INBOX.${owner}`,
});
try {
  const h = headers();
  h.set("Http-Method", "POST");
  h.set("Http-Url", "/greetings?lang=en");
  h.set("Http-Header-Content-Type", "application/json");
  // With an Event-Id of your own, a reply and a line in the worker's log can be told to belong together.
  h.set("Event-Id", crypto.randomUUID());
  const timeout = 10_000;
  // Past the deadline no one waits, so an event that has not started by then is not run.
  h.set("Deadline", new Date(Date.now() + timeout).toISOString());

  const reply = await nc.request(`pinwheel.call.fetch.${owner}.${worker}`, JSON.stringify({ name }), { headers: h, timeout });

  const failure = reply.headers?.get("Error");
  if (failure) {
    throw new Error(failure); // "reason: message", as in "no-worker: …"
  }
  console.error(`status ${reply.headers?.get("Http-Status")} after ${reply.headers?.get("Duration-Ms")} ms`);
  console.log(reply.string());
} finally {
  await nc.close();
}
