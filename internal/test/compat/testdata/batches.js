// What a queue handler gets and decides, for Cloudflare's workerd in miniflare and for Pinwheel. The worker is producer and
// consumer, and notes each delivery in KV. Each case returns what can be shown as JSON.

// shown makes JSON of a body.
function shown(v) {
  if (v === undefined) return "undefined";
  if (typeof v === "string" && v.length > 100) return `${v.slice(0, 3)}… ${v.length}`;
  if (v instanceof ArrayBuffer) return ["ArrayBuffer", ...new Uint8Array(v)];
  if (ArrayBuffer.isView(v)) return [v.constructor.name, ...v];
  return v;
}

function fails(call) {
  try {
    const value = call();
    return value === undefined ? "ok" : value;
  } catch (e) {
    return e.constructor.name;
  }
}

// bodies are sent as they are, and acknowledged.
const bodies = {
  text: ["hello", { contentType: "text" }], "empty text": ["", { contentType: "text" }], "text beyond ASCII": ["é€😀", { contentType: "text" }],
  "text with a BOM": ["\ufeffx", { contentType: "text" }], "text that is JSON": ["[1]", { contentType: "text" }], "lone surrogate": ["a\ud800", { contentType: "text" }],
  json: [{ a: [1, "é", null] }, { contentType: "json" }], "json text": ["hello", { contentType: "json" }], "json number": [5, { contentType: "json" }],
  "json null": [null, { contentType: "json" }], "json false": [false, { contentType: "json" }], "json empty text": ["", { contentType: "json" }],
  "json date": [new Date(0), { contentType: "json" }], "json with undefined": [{ a: undefined, b: 1 }, { contentType: "json" }], "json NaN": [[NaN, -0], { contentType: "json" }],
  "json with toJSON": [{ toJSON: () => "mine" }, { contentType: "json" }], "json map": [new Map([[1, 2]]), { contentType: "json" }], "json __proto__": [JSON.parse('{"__proto__": 1}'), { contentType: "json" }],
  bytes: [new Uint8Array([0, 255, 10]), { contentType: "bytes" }], "part of bytes": [new Uint8Array([1, 2, 3, 4]).subarray(1, 3), { contentType: "bytes" }], "no bytes": [new Uint8Array(), { contentType: "bytes" }],
  "bytes of words": [new Uint16Array([1, 258]), { contentType: "bytes" }],
  object: [{ a: 1 }], array: [[1, [2]]], string: ["hello"], number: [1.5], null: [null], boolean: [true], date: [new Date(0)], "bytes by default": [new Uint8Array([1, 2])], "buffer by default": [new Uint8Array([1]).buffer],
  "text in JSON": ["[1]"], "empty string": [""], large: ["x".repeat(100_000), { contentType: "text" }], "delay 0": ["d", { delaySeconds: 0 }], "delay 1": ["d", { delaySeconds: 1 }],
};

// decided are how often a message comes, and what the handler does with it.
const decided = {
  ack: [1, (m) => m.ack()], "ack twice": [1, (m) => { m.ack(); m.ack(); }], nothing: [1, () => {}],
  "retry once": [2, (m) => { if (m.attempts === 1) m.retry(); }], "retry with a delay of 0": [2, (m) => { if (m.attempts === 1) m.retry({ delaySeconds: 0 }); }],
  "retry with a delay": [2, (m) => { if (m.attempts === 1) m.retry({ delaySeconds: 1 }); }], "retry always": [3, (m) => m.retry()],
  "ack, then retry": [1, (m) => { m.ack(); m.retry(); }], "retry, then ack": [2, (m) => { if (m.attempts === 1) { m.retry(); m.ack(); } }], "retry twice": [2, (m) => { if (m.attempts === 1) { m.retry(); m.retry(); } }],
  "retry with null": [2, (m) => { if (m.attempts === 1) m.retry(null); }], "retry with no options": [2, (m) => { if (m.attempts === 1) m.retry({}); }],
  "retry with an undefined delay": [2, (m) => { if (m.attempts === 1) m.retry({ delaySeconds: undefined }); }],
};

// looks are what a handler sees of a message and its batch.
const looks = {
  "members of a message": (m) => [typeof m.id, m.timestamp instanceof Date, typeof m.attempts, typeof m.ack, typeof m.retry, m.attempts],
  "constructor of a message": (m) => [m.constructor.name, Object.prototype.toString.call(m)],
  "keys of a message": (m) => Object.keys(m).sort(),
  "ack returns": (m) => String(m.ack()),
  "retry with a number": (m) => fails(() => { m.retry(5); m.ack(); }),
  "retry with a text as delay": (m) => fails(() => { m.retry({ delaySeconds: "x" }); }),
  "retry with a negative delay": (m) => fails(() => { m.retry({ delaySeconds: -1 }); }),
  "ack of another object": (m) => fails(() => { m.ack.call({}); }),
  "body is the same each time": (m) => m.body === m.body,
  "body can be set": (m) => fails(() => { m.body = 1; return m.body === 1; }),
  "new message": (m) => fails(() => { new m.constructor(); }),
  "time of a message": (m) => Math.abs(Date.now() - m.timestamp.getTime()) < 60_000,
  "JSON of a message": (m) => Object.keys(JSON.parse(JSON.stringify(m))).sort(),
  "members of a batch": (m, b) => [b.queue, Array.isArray(b.messages), b.messages.includes(m), typeof b.ackAll, typeof b.retryAll],
  "constructor of a batch": (m, b) => [b.constructor.name, Object.prototype.toString.call(b)],
  "keys of a batch": (m, b) => Object.keys(b).sort(),
  "messages are the same each time": (m, b) => b.messages === b.messages,
  "messages are frozen": (m, b) => Object.isFrozen(b.messages),
  "metadata of a batch": (m, b) => fails(() => [typeof b.metadata, b.metadata.metrics.oldestMessageTimestamp instanceof Date]),
  "new batch": (m, b) => fails(() => { new b.constructor(); }),
  "ackAll of another object": (m, b) => fails(() => { b.ackAll.call({}); }),
  "this of the handler": (m, b, self) => typeof self.fetch,
  "env of the handler": (m, b, self, env) => [typeof env.KV, typeof env.QUEUE],
  "ctx of the handler": (m, b, self, env, ctx) => [typeof ctx.waitUntil, typeof ctx.passThroughOnException],
};

// whole are how often each of three messages comes, and what the handler does with their batch. Miniflare delivers again
// what was acknowledged when the handler throws or asks for all: those cases have a queue each, as the third entry, so that
// their messages are in no batch of another case. A waitUntil that rejects is no case: miniflare then delivers all again, at
// a time that nothing here can wait for.
const first = (b) => b.messages.filter((m) => m.attempts === 1);
const whole = {
  "ackAll and throws": [[1, 1, 1], (b) => { b.ackAll(); throw new Error("mine"); }, "QUEUE1"],
  "acks one and throws": [[1, 2, 2], (b) => { for (const m of first(b)) if (m.body.n === 0) m.ack(); if (first(b).length > 0) throw new Error("mine"); }, "QUEUE2"],
  "acks one, then retryAll": [[1, 2, 2], (b) => { for (const m of first(b)) if (m.body.n === 0) m.ack(); if (first(b).length > 0) b.retryAll(); }, "QUEUE3"],
  "acks all, then throws": [[1, 1, 1], (b) => { for (const m of b.messages) m.ack(); throw new Error("mine"); }, "QUEUE4"],
  "retries one and throws": [[2, 2, 2], (b) => { for (const m of first(b)) if (m.body.n === 1) m.retry(); if (first(b).length > 0) throw new Error("mine"); }, "QUEUE5"],
  "returns": [[1, 1, 1], () => {}],
  "ackAll": [[1, 1, 1], (b) => b.ackAll()],
  "retryAll once": [[2, 2, 2], (b) => { if (first(b).length > 0) b.retryAll(); }],
  "retryAll with a delay": [[2, 2, 2], (b) => { if (first(b).length > 0) b.retryAll({ delaySeconds: 1 }); }],
  "retryAll with a number": [[2, 2, 2], (b) => { if (first(b).length > 0) b.retryAll(5); }],
  "retryAll with a negative delay": [[2, 2, 2], (b) => { if (first(b).length > 0) b.retryAll({ delaySeconds: -1 }); }],
  "retryAll always": [[3, 3, 3], (b) => b.retryAll()],
  "throws once": [[2, 2, 2], (b) => { if (first(b).length > 0) throw new Error("mine"); }],
  "throws always": [[3, 3, 3], () => { throw new Error("mine"); }],
  "rejects once": [[2, 2, 2], async (b) => { if (first(b).length > 0) throw new Error("mine"); }],
  "throws undefined": [[2, 2, 2], (b) => { if (first(b).length > 0) throw undefined; }],
  "retries one": [[1, 2, 1], (b) => { for (const m of first(b)) if (m.body.n === 1) m.retry(); }],
  "retries one, then ackAll": [[1, 2, 1], (b) => { for (const m of first(b)) if (m.body.n === 1) m.retry(); b.ackAll(); }],
  "ackAll, then retryAll": [[1, 1, 1], (b) => { b.ackAll(); b.retryAll(); }],
  "retryAll, then ackAll": [[2, 2, 2], (b) => { if (first(b).length > 0) b.retryAll(); b.ackAll(); }],
  "acks after a wait": [[1, 1, 1], async (b) => { await scheduler.wait(10); b.ackAll(); }],
  "returns a promise": [[1, 1, 1], () => scheduler.wait(5)],
  "returns a value": [[1, 1, 1], () => ({ a: 1 })],
};

// arrived waits until count deliveries are noted, and returns what they noted by the rest of their names.
async function arrived(env, prefix, count) {
  for (let i = 0; i < 900; i++) {
    const { keys } = await env.KV.list({ prefix });
    if (keys.length >= count) return Object.fromEntries(keys.map((k) => [k.name.slice(prefix.length), k.metadata.v]));
    await scheduler.wait(20);
  }
  throw new Error(`${count} deliveries of ${prefix} do not come`);
}

const note = (env, name, v) => env.KV.put(name, "", { metadata: { v } });

// groups send messages, and answer what their deliveries noted. How often a message came is asked at the end, so that a
// delivery too many is there by then.
const groups = {
  async bodies(env) {
    const all = {};
    let seen = {};
    for (const [name, [body, options]] of Object.entries(bodies)) {
      await env.QUEUE.send(body, options);
      const came = await arrived(env, "body/", Object.keys(seen).length + 1);
      all[`body ${name}`] = Object.entries(came).find(([id]) => !(id in seen))[1];
      seen = came;
    }
    return all;
  },
  async messages(env) {
    for (const name of [...Object.keys(looks).map((n) => `look/${n}/`), ...Object.keys(decided).map((n) => `one/${n}/`)]) await env.QUEUE.send({ of: name });
    const all = {};
    for (const name of Object.keys(looks)) all[name] = (await arrived(env, `look/${name}/`, 1))[1];
    for (const [name, [count]] of Object.entries(decided)) await arrived(env, `one/${name}/`, count);
    return all;
  },
  async end(env) {
    const all = {};
    for (const name of Object.keys(decided)) {
      all[name] = await arrived(env, `one/${name}/`, 0);
      all[`ids of ${name}`] = Object.keys(await arrived(env, `id/one/${name}/`, 0)).length;
    }
    for (const name of Object.keys(whole)) all[`batch ${name}`] = Object.keys(await arrived(env, `whole/${name}/`, 0));
    return all;
  },
};
for (const [name, [counts, , queue = "QUEUE"]] of Object.entries(whole)) {
  groups[name] = async (env) => {
    await env[queue].sendBatch(counts.map((_, n) => ({ body: { of: `whole/${name}/`, n } })));
    await arrived(env, `whole/${name}/`, counts.reduce((a, b) => a + b));
    return { [`sent ${name}`]: true };
  };
}

// noted notes the delivery of a message, and returns what the handler does with it.
async function noted(message, batch, ...more) {
  const [, env] = more;
  const { of } = message.body ?? {};
  const [kind, name] = of?.split("/") ?? [];
  switch (kind) {
    case "look":
      await note(env, of + message.attempts, looks[name](message, batch, ...more));
      return () => message.ack();
    case "one":
      await note(env, of + message.attempts, message.attempts);
      await note(env, `id/${of}${message.id}`, 1);
      return () => decided[name][1](message);
    case "whole":
      await note(env, `${of}${message.body.n}, attempt ${message.attempts}`, 1);
      return undefined;
  }
  await note(env, `body/${message.id}`, shown(message.body));
  return undefined;
}

export default {
  async fetch(request, env) {
    const names = ["bodies", "messages", ...Object.keys(whole), "end"];
    const at = new URL(request.url).searchParams.get("case"); // its number, because an event may make some calls only; none: all
    const all = {};
    for (const name of at === null ? names : names.slice(+at, +at + 1)) Object.assign(all, await groups[name](env));
    return Response.json(all);
  },

  async queue(batch, env, ctx) {
    const actions = [];
    for (const message of batch.messages) actions.push(await noted(message, batch, this, env, ctx));
    for (const action of actions) action?.();
    const [kind, name] = batch.messages[0].body?.of?.split("/") ?? [];
    if (kind === "whole") return whole[name][1](batch);
  },
};
