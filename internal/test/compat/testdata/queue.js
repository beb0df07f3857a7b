// Calls of a queue, for Cloudflare's workerd in miniflare and for Pinwheel. Each case returns what can be shown as JSON.
const pair = (n) => Array.from({ length: n }, (_, i) => ({ body: i }));
const cases = {
  "send nothing": (env) => env.QUEUE.send(),
  "send undefined": (env) => env.QUEUE.send(undefined),
  "send object": (env) => env.QUEUE.send({ a: 1 }),
  "send null": (env) => env.QUEUE.send(null),
  "send text": (env) => env.QUEUE.send("x", { contentType: "text" }),
  "send text of number": (env) => env.QUEUE.send(1, { contentType: "text" }),
  "send bytes": (env) => env.QUEUE.send(new Uint8Array([1, 2]), { contentType: "bytes" }),
  "send bytes of view": (env) => env.QUEUE.send(new DataView(new ArrayBuffer(4)), { contentType: "bytes" }),
  "send bytes of buffer": (env) => env.QUEUE.send(new ArrayBuffer(4), { contentType: "bytes" }),
  "send bytes of string": (env) => env.QUEUE.send("abc", { contentType: "bytes" }),
  "send json": (env) => env.QUEUE.send([1, "ü"], { contentType: "json" }),
  "send json of function": (env) => env.QUEUE.send(() => 1, { contentType: "json" }),
  "send json cyclic": (env) => { const o = {}; o.o = o; return env.QUEUE.send(o, { contentType: "json" }); },
  "send json bigint": (env) => env.QUEUE.send(1n, { contentType: "json" }),
  "send v8": (env) => env.QUEUE.send(new Map([[1, new Date(0)]]), { contentType: "v8" }),
  "send v8 undefined": (env) => env.QUEUE.send({ a: undefined, b: [1n, /x/g, new Set([NaN])], c: new Uint8Array(3) }, { contentType: "v8" }),
  "send v8 function": (env) => env.QUEUE.send(() => 1, { contentType: "v8" }),
  "send v8 symbol": (env) => env.QUEUE.send({ s: Symbol("s") }, { contentType: "v8" }),
  "send v8 cyclic": (env) => { const o = {}; o.o = o; return env.QUEUE.send(o, { contentType: "v8" }); },
  "send bad type": (env) => env.QUEUE.send("x", { contentType: "nope" }),
  "send type null": (env) => env.QUEUE.send("x", { contentType: null }),
  "send options null": (env) => env.QUEUE.send("x", null),
  "send options number": (env) => env.QUEUE.send("x", 5),
  "send delay": (env) => env.QUEUE.send("x", { delaySeconds: 1 }),
  "send delay 0": (env) => env.QUEUE.send("x", { delaySeconds: 0 }),
  "send delay null": (env) => env.QUEUE.send("x", { delaySeconds: null }),
  "send delay negative": (env) => env.QUEUE.send("x", { delaySeconds: -1 }),
  "send delay long": (env) => env.QUEUE.send("x", { delaySeconds: 43201 }),
  "send delay fraction": (env) => env.QUEUE.send("x", { delaySeconds: 1.5 }),
  "send delay text": (env) => env.QUEUE.send("x", { delaySeconds: "x" }),
  "send large": (env) => env.QUEUE.send("x".repeat(128 * 1024 + 1), { contentType: "text" }),
  "send 128000": (env) => env.QUEUE.send("x".repeat(127 * 1024), { contentType: "text" }),
  "batch no args": (env) => env.QUEUE.sendBatch(),
  "batch empty": (env) => env.QUEUE.sendBatch([]),
  "batch null": (env) => env.QUEUE.sendBatch(null),
  "batch string": (env) => env.QUEUE.sendBatch("abc"),
  "batch object": (env) => env.QUEUE.sendBatch({ body: 1 }),
  "batch one": (env) => env.QUEUE.sendBatch([{ body: 1 }]),
  "batch 100": (env) => env.QUEUE.sendBatch(pair(100)),
  "batch 101": (env) => env.QUEUE.sendBatch(pair(101)),
  "batch set": (env) => env.QUEUE.sendBatch(new Set(pair(3))),
  "batch generator": (env) => env.QUEUE.sendBatch((function* () { yield { body: 1 }; yield { body: 2 }; })()),
  "batch async generator": (env) => env.QUEUE.sendBatch((async function* () { yield { body: 1 }; })()),
  "batch iterator throws": (env) => env.QUEUE.sendBatch((function* () { yield { body: 1 }; throw new RangeError("mine"); })()),
  "batch of numbers": (env) => env.QUEUE.sendBatch([1]),
  "batch of null": (env) => env.QUEUE.sendBatch([null]),
  "batch without body": (env) => env.QUEUE.sendBatch([{}]),
  "batch body undefined": (env) => env.QUEUE.sendBatch([{ body: undefined }]),
  "batch mixed": (env) => env.QUEUE.sendBatch([{ body: "t", contentType: "text" }, { body: new Uint8Array(3), contentType: "bytes" }, { body: { a: 1 }, contentType: "json" }, { body: new Set([1]), contentType: "v8" }]),
  "batch bad type": (env) => env.QUEUE.sendBatch([{ body: 1 }, { body: "x", contentType: "nope" }]),
  "batch text of number": (env) => env.QUEUE.sendBatch([{ body: 1, contentType: "text" }]),
  "batch bytes of buffer": (env) => env.QUEUE.sendBatch([{ body: new ArrayBuffer(1), contentType: "bytes" }]),
  "batch delays": (env) => env.QUEUE.sendBatch([{ body: 1, delaySeconds: 1 }, { body: 2 }], { delaySeconds: 2 }),
  "batch delay negative": (env) => env.QUEUE.sendBatch([{ body: 1, delaySeconds: -1 }]),
  "batch delay long": (env) => env.QUEUE.sendBatch([{ body: 1 }], { delaySeconds: 43201 }),
  "batch options null": (env) => env.QUEUE.sendBatch([{ body: 1 }], null),
  "batch options number": (env) => env.QUEUE.sendBatch([{ body: 1 }], 5),
  "batch 256 KiB": (env) => env.QUEUE.sendBatch(Array.from({ length: 2 }, () => ({ body: "x".repeat(127 * 1024), contentType: "text" }))),
  "batch 300 KiB": (env) => env.QUEUE.sendBatch(Array.from({ length: 3 }, () => ({ body: "x".repeat(100 * 1024), contentType: "text" }))),
  "batch getter throws": (env) => env.QUEUE.sendBatch([{ get body() { throw new RangeError("mine"); } }]),
  "shape": (env) => [Object.prototype.toString.call(env.QUEUE), env.QUEUE.constructor.name, Object.keys(env.QUEUE), typeof env.QUEUE.send, typeof env.QUEUE.sendBatch],
  "illegal receiver": (env) => { const { sendBatch } = env.QUEUE; return sendBatch([{ body: 1 }]); },
  "returns promises": async (env) => { const p = env.QUEUE.sendBatch([]); const is = p instanceof Promise; await p.catch(() => {}); return is; },
};

export default {
  task() {}, // of Pinwheel: the queue is the worker's own
  async fetch(request, env) {
    const shown = {};
    for (const [name, run] of Object.entries(cases)) {
      try {
        const value = await run(env);
        // workerd answers with how much is waiting, and Pinwheel with nothing.
        shown[name] = value === undefined || value.metadata ? "stored" : value;
      } catch (e) {
        // The messages of TypeErrors are each runtime's own.
        shown[name] = e instanceof TypeError ? "throws a TypeError" : `throws ${e.constructor.name}: ${e.message}`;
      }
    }
    return Response.json(shown);
  },
};
