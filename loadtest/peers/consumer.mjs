// Consumes events of a JetStream stream as a Node, Deno or Bun program does: the handler's answer goes to the event's
// Reply-To, then the event is acked. MODE says how the handler is run.

import { jetstream } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";

const { MODE, NATS_URL, STREAM, CONSUMER } = process.env;
const modes = {
  plain: () => import("./plain.mjs"),
  fetch: () => import("./fetch.mjs"),
  threads: () => import("./threads.mjs"),
  "threads-fetch": () => import("./threads.mjs"),
  ivm: () => import("./ivm.mjs"),
};
const { answer } = await modes[MODE]();

const nc = await connect({ servers: NATS_URL });
const consumer = await jetstream(nc).consumers.get(STREAM, CONSUMER);

function settle(m, reply) {
  nc.publish(m.headers.get("Reply-To"), reply);
  m.ack();
}

function failed(m, error) {
  console.error(`event ${m.seq}:`, error);
  m.nak();
}

function take(m) {
  try {
    // pinwheel.events.LANE.KIND.OWNER.WORKER
    const reply = answer(m.subject.split(".")[4], m.data);
    if (typeof reply?.then === "function") {
      reply.then((r) => settle(m, r), (e) => failed(m, e));
    } else {
      settle(m, reply);
    }
  } catch (e) {
    failed(m, e);
  }
}

process.on("SIGTERM", () => process.exit(0));
await consumer.consume({ max_messages: 1000, callback: take });
await nc.closed();
