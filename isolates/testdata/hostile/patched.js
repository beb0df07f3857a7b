// Guests that patch what everybody shares: the runtime goes on working and shows them nothing of its own.

const leaks = [];

// inspectable notes anything a patch sees that is not the guest's: an object without prototype, or one of no known class.
function suspicious(value) {
  if ((typeof value !== "object" || value === null) && typeof value !== "function") return false;
  if (value === globalThis || value === undefined) return false;
  const proto = getPrototypeOf(value);
  if (proto === null) return true;
  return getPrototypeOf(proto) === null && proto !== Object.prototype;
}

const { defineProperty, getOwnPropertyDescriptor, getPrototypeOf } = Object;

// What everything() needs beside the runtime is made here, for the cases patch Array, Map and the like.
const call = Function.prototype.call.bind(Function.prototype.call);
const saved = { stringify: JSON.stringify, defineProperty: Reflect.defineProperty, dispatchEvent: EventTarget.prototype.dispatchEvent, get: Map.prototype.get, has: Set.prototype.has };
const byteLength = getOwnPropertyDescriptor(getPrototypeOf(Uint8Array.prototype), "byteLength").get;
const bufferLength = getOwnPropertyDescriptor(ArrayBuffer.prototype, "byteLength").get;
const sampleMap = new Map([[1, new Set([2])]]);
const sampleBytes = [new Uint8Array([97, 0]), new Uint8Array([1])];
const sampleBuffer = new Uint8Array([7]).buffer;

// seq is a sequence that does not go through the array iterator.
function seq(...values) {
  return { [Symbol.iterator]() {
    let i = 0;
    return { next: () => (i < values.length ? { value: values[i++], done: false } : { value: undefined, done: true }) };
  } };
}

// put adds without push, which some cases patch.
function put(out, ...values) {
  for (let i = 0; i < values.length; i++) out[out.length] = values[i];
}

// newer is the part of everything that came later.
async function newer(out) {
  const pattern = new URLPattern({ pathname: "/:a/:b(\\d+)" });
  put(out, pattern.exec("http://h/x/12").pathname.groups.b, pattern.test({ pathname: "/x/y" }), new URLPattern("http{s}?://*.h/:p", { ignoreCase: true }).test("https://a.h/Q"));
  const als = new AsyncLocalStorage();
  put(out, await als.run("v", async () => { await null; return als.getStore(); }), AsyncLocalStorage.snapshot()(() => als.getStore()));
  const { port1, port2 } = new MessageChannel();
  const got = new Promise((resolve) => { port2.onmessage = (e) => resolve(e.data.n); });
  port1.postMessage({ n: 1, m: sampleMap }, seq(new ArrayBuffer(1)));
  put(out, await got);
  port1.close();
  performance.mark("m", { detail: { a: 1 } });
  put(out, performance.measure("x", { start: 0, end: 5 }).duration, performance.getEntriesByName("m").length, performance.getEntries()[0].name);
  performance.clearMarks();
  performance.clearMeasures();
  const source = new EventSource("ftp://h/");
  put(out, await new Promise((resolve) => { source.onerror = () => resolve(source.readyState); }));
  await scheduler.wait(0);
  console.table(sampleMap);
  console.dir({ error: new Error("shown", { cause: sampleBytes }) }, { depth: 3 });
}

async function everything() {
  const out = [];
  const request = new Request("http://münchen.example/a?b=c", { method: "POST", body: '{"n":1}', headers: { x: "1", y: "2" } });
  put(out, request.headers.get("x"), (await request.clone().json()).n, call(byteLength, await request.bytes()));
  const response = Response.json({ a: [1, 2] }, { status: 201, headers: { z: "9" } });
  const names = [];
  response.headers.forEach((_, name) => { names[names.length] = name; });
  put(out, names.length, await response.clone().text());
  const url = new URL("../x?y=%20", "http://h/a/b/c");
  url.searchParams.append("k", "v v");
  put(out, url.href);
  const stream = new ReadableStream({ start(c) { c.enqueue("a"); c.enqueue("b"); c.close(); } });
  const up = new TransformStream({ transform(x, c) { c.enqueue(x.toUpperCase()); } });
  const reader = stream.pipeThrough(up).getReader();
  put(out, (await reader.read()).value, (await reader.read()).value, (await reader.read()).done);
  const branches = new Response("tee").body.tee();
  put(out, await new Response(branches[0]).text(), await new Response(branches[1]).text());
  put(out, new TextDecoder("utf-16le").decode(sampleBytes[0]), new TextDecoder().decode(new TextEncoder().encode("é")), atob(btoa("x")));
  const copy = structuredClone({ m: sampleMap, d: new Date(5), b: sampleBuffer });
  put(out, call(saved.has, call(saved.get, copy.m, 1), 2), copy.d.getTime(), call(bufferLength, copy.b));
  const form = new FormData();
  form.append("f", new File(seq("file"), "n"));
  put(out, await (await new Response(form).formData()).get("f").text());
  const key = await crypto.subtle.importKey("raw", sampleBytes[1], { name: "HMAC", hash: "SHA-256" }, true, seq("sign"));
  put(out, call(bufferLength, await crypto.subtle.sign("HMAC", key, sampleBytes[1])), crypto.randomUUID().length);
  const target = new EventTarget();
  target.addEventListener("x", () => { out[out.length] = "event"; });
  call(saved.dispatchEvent, target, new Event("x"));
  const controller = new AbortController();
  AbortSignal.any(seq(controller.signal)).addEventListener("abort", () => { out[out.length] = "aborted"; });
  controller.abort();
  await new Promise((resolve) => setTimeout(resolve, 0));
  await new Promise((resolve) => queueMicrotask(resolve));
  console.log("%s %o", "text", { a: [1, sampleMap] }, new Error("shown"), response, [1, 2, 3]);
  console.table([{ a: 1 }]);
  await newer(out);
  return out;
}

let expected;

test("without patches", async () => {
  expected = await everything();
  assert.equal(expected.length, 32);
});


async function survives(object, key, descriptor) {
  const before = getOwnPropertyDescriptor(object, key);
  let result;
  let error;
  defineProperty(object, key, { configurable: true, ...descriptor });
  try {
    result = await everything();
  } catch (e) {
    error = e;
  } finally {
    if (before === undefined) delete object[key];
    else defineProperty(object, key, before);
  }
  if (error !== undefined) throw error;
  assert.equal(saved.stringify(result), saved.stringify(expected));
  assert.equal(leaks.length, 0, `saw ${leaks.length} objects of the runtime`);
}

const boom = { value() { throw new Error("a patched method was called by the runtime"); }, writable: true };

test("patched methods are not called", async () => {
  const cases = [[Promise.prototype, "then"], [Promise.prototype, "catch"], [Promise.prototype, "finally"], [Promise, "resolve"], [Promise, "reject"], [Promise, "all"],
    [Array.prototype, Symbol.iterator], [Array.prototype, "push"], [Array.prototype, "shift"], [Array.prototype, "join"], [Array.prototype, "map"], [Array.prototype, "concat"],
    [Array.prototype, "slice"], [Array.prototype, "indexOf"], [Array.prototype, "sort"], [Array, "from"], [Array, "isArray"],
    [String.prototype, "charCodeAt"], [String.prototype, "slice"], [String.prototype, "split"], [String.prototype, "toLowerCase"], [String.prototype, "indexOf"],
    [String.prototype, "replace"], [String.prototype, "trim"], [String.prototype, "startsWith"], [String.prototype, Symbol.iterator], [String, "fromCharCode"],
    [RegExp.prototype, "exec"], [RegExp.prototype, "test"], [RegExp.prototype, Symbol.replace], [JSON, "parse"], [JSON, "stringify"],
    [Function.prototype, "call"], [Function.prototype, "apply"], [Function.prototype, "bind"], [Function.prototype, Symbol.hasInstance === undefined ? "x" : "toString"],
    [Map.prototype, "get"], [Map.prototype, "set"], [Map.prototype, "delete"], [Set.prototype, "add"], [WeakMap.prototype, "get"], [WeakSet.prototype, "has"],
    [Object, "keys"], [Object, "defineProperty"], [Object, "setPrototypeOf"], [Object, "getOwnPropertyDescriptor"], [Object.prototype, "hasOwnProperty"], [Object.prototype, "toString"],
    [Reflect, "apply"], [Reflect, "ownKeys"], [Reflect, "construct"], [Math, "min"], [Math, "floor"], [Number, "isFinite"], [Number.prototype, "toString"], [Date, "now"],
    [Object.getPrototypeOf(Uint8Array.prototype), "set"], [Object.getPrototypeOf(Uint8Array.prototype), "subarray"], [Object.getPrototypeOf(Uint8Array.prototype), "slice"],
    [ArrayBuffer.prototype, "slice"], [String.prototype, Symbol.split], [Object.prototype, Symbol.split], [Object.prototype, Symbol.match],
    [String.prototype, Symbol.match], [Uint8Array, Symbol.species], [ArrayBuffer, Symbol.species], [ArrayBuffer.prototype, "transfer"], [ArrayBuffer, "isView"], [Error, "captureStackTrace"], [Symbol.prototype, "toString"]];
  for (const [object, key] of cases) {
    await survives(object, key, boom);
  }
});

test("patched interfaces of the runtime's own are not called", async () => {
  for (const [Class, key] of [[EventTarget, "dispatchEvent"], [Event, "preventDefault"], [ReadableStreamDefaultReader, "releaseLock"], [AbortSignal, "throwIfAborted"], [MessagePort, "start"], [PerformanceEntry, "toJSON"],
    [TextDecoder, "encoding"], [WritableStream, "abort"], [URLSearchParams, "toString"], [Headers, "entries"], [Headers, "getSetCookie"], [URL, "toString"], [Blob, "arrayBuffer"]]) {
    await survives(Class.prototype, key, boom);
  }
});

test("patched getters are not called", async () => {
  const thrower = { get() { throw new Error("a patched getter was called by the runtime"); } };
  const T = Object.getPrototypeOf(Uint8Array.prototype);
  for (const [object, key] of [[T, "buffer"], [T, "byteOffset"], [T, "length"], [T, "byteLength"], [T, Symbol.toStringTag], [Uint8Array.prototype, "constructor"],
    [ArrayBuffer.prototype, "byteLength"], [ArrayBuffer.prototype, "constructor"], [T.constructor, Symbol.species], [Map.prototype, "size"], [Set.prototype, "size"], [ArrayBuffer.prototype, "detached"],
    [AbortSignal.prototype, "aborted"], [AbortSignal.prototype, "reason"], [Request.prototype, "method"], [Request.prototype, "signal"],
    [ReadableStream.prototype, "locked"], [Response.prototype, "bodyUsed"], [Symbol.prototype, "description"], [RegExp.prototype, "flags"], [RegExp.prototype, "global"], [PerformanceEntry.prototype, "startTime"],
    [Request.prototype, "url"], [Response.prototype, "status"], [URL.prototype, "origin"]]) {
    await survives(object, key, thrower);
  }
});

test("setters on Object.prototype and Array.prototype see nothing", async () => {
  for (const key of ["value", "done", "stream", "state", "reader", "controller", "queue", "promise", "resolve", "reject", "list", "flat", "headers", "source", "url", "id", "run",
    "answered", "waiting", "next", "head", "tail", "callback", "timer", "signal", "buffer", "requests", "kind", "handle", "request", "key", "values", "initial", "frame", "port", "ports", "home", "parts", "names", "tokens", "groups", "detail",
    "columns", "cells", "depth", "baseURL", "protocol", "pathname", "timeline", "console"]) {
    const seen = function (v) {
      if (suspicious(this)) leaks.push(this);
      if (suspicious(v)) leaks.push(v);
      defineProperty(this, key, { value: v, writable: true, enumerable: true, configurable: true });
    };
    await survives(Object.prototype, key, { get: undefined, set: seen });
  }
  for (const index of ["0", "1", "2"]) {
    const seen = function (v) {
      if (suspicious(v) || !Array.isArray(this)) leaks.push({ value: v });
      defineProperty(this, index, { value: v, writable: true, enumerable: true, configurable: true });
    };
    await survives(Array.prototype, index, { get: undefined, set: seen });
  }
});

test("values on Object.prototype do not pass for options", async () => {
  await patched(Object.prototype, "status", { value: 418, writable: true }, () => {
    assert.equal(new Response("x").status, 200);
    assert.equal(new Response("x", undefined).status, 200);
  });
  await patched(Object.prototype, "get", { value: () => 5, writable: true }, async () => {
    assert.equal(structuredClone({ a: 1 }).a, 1);
    assert.equal(new Headers({ a: "b" }).get("a"), "b");
  });
  await patched(Object.prototype, "signal", { value: 5, writable: true }, () => {
    new Request("http://h/");
    new EventTarget().addEventListener("x", () => {});
    assert.ok(true);
  });
});

test("Symbol.species and constructor see no control objects", async () => {
  const seen = [];
  class Evil extends Promise {
    constructor(executor) {
      super(executor);
      seen.push(executor);
    }
  }
  await patched(Promise, Symbol.species, { get: () => Evil }, async () => {
    await everything();
  });
  await patched(Promise.prototype, "constructor", { get: () => Evil }, async () => {
    assert.equal(saved.stringify(await everything()), saved.stringify(expected));
  });
  for (const executor of seen) assert.equal(typeof executor, "function");
  await patched(Uint8Array, Symbol.species, { get() { throw new Error("species"); } }, async () => {
    await new Response(new Uint8Array([1, 2])).bytes();
    assert.equal(new TextDecoder().decode(new Uint8Array([97])), "a");
  });
  assert.ok(true);
});

test("Object.prototype.then does not stop the runtime", async () => {
  let calls = 0;
  Object.defineProperty(Object.prototype, "then", { configurable: true, get() { calls++; return undefined; } });
  try {
    assert.equal(saved.stringify(await everything()), saved.stringify(expected));
  } finally {
    delete Object.prototype.then;
  }
});

test("replaced globals are not used", async () => {
  const names = ["Promise", "Map", "Set", "Uint8Array", "Headers", "Request", "Response", "URL", "ReadableStream", "AbortSignal", "TextEncoder", "TextDecoder", "Event", "DOMException",
    "structuredClone", "setTimeout", "Blob", "File", "FormData", "WritableStream", "TypeError", "Error", "Object", "Array", "JSON", "Reflect", "Symbol", "String", "queueMicrotask"];
  const own = { Request, Response };
  for (const name of names) {
    const before = Object.getOwnPropertyDescriptor(globalThis, name);
    let texts;
    globalThis[name] = function () { throw new own.Response("a replaced global was used"); };
    try {
      const r = new own.Response('{"a":1}', { headers: [["x", "y"]] });
      const c = r.clone();
      void c.body;
      texts = [await r.text(), (await c.json()).a, new own.Request("http://h/x?y", { method: "POST", body: "b" }).clone().url];
    } finally {
      saved.defineProperty(globalThis, name, before);
    }
    assert.deepEqual(texts, ['{"a":1}', 1, "http://h/x?y"], name);
  }
});

test("typed arrays are shown without their patched length", async () => {
  let reads = 0;
  await patched(Uint8Array.prototype, "length", { get() { reads++; return 0; } }, () => { console.log(new Uint8Array(2)); });
  assert.equal(reads, 0);
});
