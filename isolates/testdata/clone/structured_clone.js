// structuredClone.

const clone = structuredClone;

test("primitives", () => {
  for (const v of [undefined, null, true, false, 0, -0, NaN, Infinity, "", "\ud800x", 10n, -(2n ** 80n)]) assert.equal(clone(v), v);
  assert.throws(() => clone(Symbol()), "DataCloneError");
  assert.throws(() => clone(), TypeError);
});

test("boxed primitives", () => {
  const cases = [[new Boolean(false), Boolean], [new Number(-0), Number], [new String("x"), String], [Object(5n), BigInt]];
  for (const [v, Class] of cases) {
    const c = clone(v);
    assert.ok(typeof c === "object" && c instanceof Class && c !== v);
    assert.ok(Object.is(c.valueOf(), v.valueOf()));
  }
  assert.throws(() => clone(Object(Symbol())), "DataCloneError");
});

test("dates and regular expressions", () => {
  const d = new Date(8.64e15);
  assert.equal(clone(d).getTime(), 8.64e15);
  assert.ok(Number.isNaN(clone(new Date(NaN)).getTime()));
  const r = /a\/b[/]/giu;
  r.lastIndex = 3;
  const c = clone(r);
  assert.deepEqual([c.source, c.flags, c.lastIndex], [r.source, "giu", 0]);
});

test("objects: own enumerable string keys only", () => {
  const proto = { inherited: 1 };
  const o = Object.create(proto, { hidden: { value: 1, enumerable: false }, shown: { get: () => 5, enumerable: true } });
  o[Symbol("s")] = 1;
  o.x = undefined;
  const c = clone(o);
  assert.deepEqual(Object.keys(c), ["shown", "x"]);
  assert.equal(Object.getPrototypeOf(c), Object.prototype);
  assert.deepEqual(Object.getOwnPropertyDescriptor(c, "shown"), { value: 5, writable: true, enumerable: true, configurable: true });
  class Point { x = 1; #y = 2; get y() { return this.#y; } }
  assert.equal(clone(new Point()).constructor, Object);
  assert.equal(clone({ __proto__: null, a: 1 }).a, 1);
  const withProto = clone(JSON.parse('{"__proto__": {"x": 1}}'));
  assert.equal(Object.getPrototypeOf(withProto), Object.prototype);
  assert.ok(Object.hasOwn(withProto, "__proto__"));
});

test("arrays: holes, length, extra properties", () => {
  const a = [1, , 3];
  a.extra = "e";
  a.length = 5;
  const c = clone(a);
  assert.equal(c.length, 5);
  assert.deepEqual([1 in c, 2 in c, 4 in c, c.extra], [false, true, false, "e"]);
  assert.ok(Array.isArray(c));
});

test("cycles and identity", () => {
  const o = { a: {} };
  o.self = o;
  o.again = o.a;
  const c = clone(o);
  assert.equal(c.self, c);
  assert.equal(c.again, c.a);
  assert.notEqual(c.a, o.a);
  const m = new Map();
  m.set(m, new Set([m]));
  const cm = clone(m);
  assert.equal([...cm.keys()][0], cm);
  assert.ok([...cm.values()][0].has(cm));
});

test("maps and sets", () => {
  const m = new Map([[NaN, 1], ["k", { v: 2 }], [{ key: 1 }, "o"]]);
  m.extra = 1;
  const c = clone(m);
  assert.deepEqual([...c].map(([k, v]) => [typeof k, v]), [["number", 1], ["string", { v: 2 }], ["object", "o"]]);
  assert.equal(c.extra, undefined);
  assert.deepEqual([...clone(new Set([3, 1, 2, "x"]))], [3, 1, 2, "x"]);
});

test("errors", () => {
  for (const Class of [Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError]) {
    const c = clone(new Class("m"));
    assert.equal(Object.getPrototypeOf(c), Class.prototype);
    assert.deepEqual([c.message, c.name, Object.hasOwn(c, "message")], ["m", Class.name, true]);
  }
  assert.equal(Object.hasOwn(clone(new Error()), "message"), false);
  class Mine extends TypeError { name = "Mine"; }
  assert.equal(Object.getPrototypeOf(clone(new Mine("x"))), Error.prototype);
  const e = new Error("outer", { cause: { deep: new RangeError("in") } });
  assert.equal(clone(e).cause.deep.message, "in");
  assert.equal(typeof clone(e).stack, "string");
  const extra = new Error("x");
  extra.code = 5;
  assert.equal(clone(extra).code, undefined);
  const d = clone(new DOMException("m", "AbortError"));
  assert.ok(d instanceof DOMException);
  assert.deepEqual([d.name, d.message, d.code], ["AbortError", "m", 20]);
});

test("buffers and views", () => {
  const buffer = new Uint8Array([1, 2, 3, 4, 5, 6, 7, 8]).buffer;
  const { a, b, dv, again } = clone({ a: new Uint8Array(buffer, 2, 3), b: new Uint16Array(buffer, 4, 2), dv: new DataView(buffer, 1, 4), again: buffer });
  assert.deepEqual([...a], [3, 4, 5]);
  assert.deepEqual([b.length, b.byteOffset, dv.byteLength, dv.getUint8(0)], [2, 4, 4, 2]);
  assert.ok(a.buffer === b.buffer && a.buffer === dv.buffer && a.buffer === again);
  assert.notEqual(a.buffer, buffer);
  assert.equal(again.byteLength, 8);
  for (const Class of [Int8Array, Uint8ClampedArray, Int32Array, Float32Array, Float64Array, BigInt64Array, BigUint64Array]) {
    assert.equal(clone(new Class(2)).constructor, Class);
  }
  const detached = new ArrayBuffer(1);
  detached.transfer();
  assert.throws(() => clone(detached), "DataCloneError");
});

test("transfer", () => {
  const buffer = new Uint8Array([1, 2, 3]).buffer;
  const view = new Uint8Array(buffer, 1);
  const c = clone({ view, buffer }, { transfer: [buffer] });
  assert.equal(buffer.detached, true);
  assert.equal(view.length, 0);
  assert.deepEqual([...c.view], [2, 3]);
  assert.equal(c.buffer, c.view.buffer);
  const unused = new ArrayBuffer(2);
  clone(1, { transfer: [unused] });
  assert.equal(unused.detached, true);
});

test("transfer: refused without harm", () => {
  const buffer = new ArrayBuffer(4);
  assert.throws(() => clone({ f() {} }, { transfer: [buffer] }), "DataCloneError");
  assert.equal(buffer.detached, false);
  assert.throws(() => clone(1, { transfer: [buffer, buffer] }), "DataCloneError");
  assert.equal(buffer.detached, false);
  assert.throws(() => clone(1, { transfer: [{}] }), "DataCloneError");
  assert.throws(() => clone(1, { transfer: [1] }), TypeError);
  assert.throws(() => clone(1, { transfer: 1 }), TypeError);
  buffer.transfer();
  assert.throws(() => clone(1, { transfer: [buffer] }), "DataCloneError");
});

test("what cannot be cloned", () => {
  for (const v of [() => {}, class {}, new WeakMap(), new WeakSet(), new WeakRef({}), Promise.resolve(), Symbol(), { a: [{ b: () => {} }] },
    new Headers(), new Request("http://a/"), new Response(), new AbortController().signal, new ReadableStream(), new URL("http://a/"),
    new URLSearchParams(), new FormData(), new Event("x"), new TextEncoder(), crypto, globalThis.performance]) {
    assert.throws(() => clone(v), "DataCloneError");
  }
});

test("blobs and files", async () => {
  const f = clone(new File(["hi"], "n.txt", { type: "text/plain", lastModified: 5 }));
  assert.ok(f instanceof File);
  assert.deepEqual([f.name, f.type, f.lastModified, await f.text()], ["n.txt", "text/plain", 5, "hi"]);
  assert.equal(await clone(new Blob(["x"])).text(), "x");
});

test("exceptions of getters pass through", () => {
  assert.throws(() => clone({ get x() { throw new RangeError("mine"); } }), RangeError);
  const order = [];
  clone({ get b() { order.push("b"); return 1; }, get a() { order.push("a"); return 1; } });
  assert.deepEqual(order, ["b", "a"]);
});

test("deep values", () => {
  let deep = {};
  for (let i = 0; i < 500; i++) deep = { deep };
  let c = clone(deep);
  for (let i = 0; i < 500; i++) c = c.deep;
  assert.deepEqual(c, {});
});
