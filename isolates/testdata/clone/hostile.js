// structuredClone of values made to confuse it.

const nest = (depth, leaf = 1) => {
  let v = leaf;
  for (let i = 0; i < depth; i++) v = i % 2 ? [v] : { v };
  return v;
};

test("nesting too deep throws, wherever the stack ends", () => {
  let refused = 0;
  for (let depth = 1000; depth < 2e5; depth = Math.floor(depth * 1.3)) {
    try {
      structuredClone(nest(depth));
    } catch (e) {
      refused++;
      assert.ok(e instanceof RangeError || e.name === "DataCloneError", e);
    }
  }
  assert.ok(refused > 0);
  const map = new Map();
  let m = map;
  for (let i = 0; i < 1e5; i++) m.set(1, (m = new Map()));
  assert.throws(() => structuredClone(map), RangeError);
  let error = new Error("x");
  for (let i = 0; i < 2e4; i++) error = new Error("x", { cause: error });
  assert.throws(() => structuredClone(error), RangeError);
});

test("a getter that clones, without end", () => {
  const value = { big: new Uint8Array(1 << 20), get again() { return structuredClone(value); } };
  try {
    structuredClone(value);
    assert.ok(false);
  } catch (e) {
    assert.ok(e instanceof RangeError || e.name === "DataCloneError", e);
  }
  let calls = 0;
  assert.deepEqual(structuredClone({ get a() { calls++; return structuredClone({ b: calls }); } }), { a: { b: 1 } });
});

test("getters that change what is being cloned", () => {
  const array = [1, { get x() { array.length = 2; return 1; } }, 3, 4, 5];
  const c = structuredClone(array);
  assert.equal(c.length, 5);
  assert.deepEqual([c[0], c[1].x, 2 in c], [1, 1, false]);

  const growing = [{ get x() { for (let i = 0; i < 1000; i++) growing.push(i); return 1; } }, 2];
  assert.deepEqual(structuredClone(growing).slice(0, 2), [{ x: 1 }, 2]);

  const doubles = [1.5, 2.5, 3.5];
  const holder = { get a() { doubles[1] = "now a string"; doubles.length = 2; return 0; }, doubles };
  assert.deepEqual(structuredClone(holder).doubles, [1.5, "now a string"]);

  const object = { get a() { delete object.b; object.z = 1; return 1; }, b: 2, c: 3 };
  assert.deepEqual(structuredClone(object), { a: 1, c: 3 });

  const map = new Map([[1, { get x() { map.clear(); map.set("late", 1); return 1; } }], [2, 2]]);
  assert.deepEqual([...structuredClone(map)], [[1, { x: 1 }], [2, 2]]);
  const set = new Set([{ get x() { set.clear(); return 1; } }, 2]);
  assert.equal(structuredClone(set).size, 2);

  const odd = { get x() { Object.setPrototypeOf(odd, Headers.prototype); return 1; }, y: 2 };
  assert.deepEqual(structuredClone(odd), { x: 1, y: 2 });
});

test("buffers that change under it", () => {
  const buffer = new ArrayBuffer(8);
  assert.throws(() => structuredClone({ get a() { buffer.transfer(); return 1; }, view: new Uint8Array(buffer) }), "DataCloneError");
  const moved = new ArrayBuffer(8);
  assert.throws(() => structuredClone({ get a() { moved.transfer(); return 1; } }, { transfer: [moved] }), "DataCloneError");
  const sizes = new ArrayBuffer(8, { maxByteLength: 16 });
  const tracking = new Uint8Array(sizes);
  const fixed = new Uint8Array(sizes, 4, 4);
  const c = structuredClone({ get a() { sizes.resize(12); return 1; }, tracking, fixed, sizes });
  assert.deepEqual([c.tracking.length, c.fixed.length, c.sizes.byteLength, c.sizes.maxByteLength, c.sizes.resizable], [12, 4, 12, 16, true]);
  c.sizes.resize(16);
  assert.deepEqual([c.tracking.length, c.fixed.length], [16, 4]);
  assert.throws(() => structuredClone({ get a() { sizes.resize(2); return 1; }, fixed }), "DataCloneError");
});

test("what the guest has patched is neither used nor seen", () => {
  let seen = "";
  const spy = (name) => function () { seen += name + ";"; throw new Error(name); };
  const patched = [[Map.prototype, "set"], [Set.prototype, "add"], [Array.prototype, "push"], [Array.prototype, Symbol.iterator],
    [Object, "keys"], [Reflect, "ownKeys"], [Error, "captureStackTrace"], [Promise.prototype, "then"], [RegExp.prototype, "exec"]];
  const saved = patched.map(([o, k]) => Object.getOwnPropertyDescriptor(o, k));
  for (let i = 0; i < patched.length; i++) Object.defineProperty(patched[i][0], patched[i][1], { value: spy(String(patched[i][1])), configurable: true, writable: true });
  Object.defineProperty(Object.prototype, "a", { set: spy("set a"), configurable: true });
  Object.defineProperty(Array.prototype, "0", { set: spy("set 0"), configurable: true });
  Object.defineProperty(Object.prototype, "cause", { get: spy("get cause"), configurable: true });
  let c;
  try {
    const value = JSON.parse('{"list": [1, 2], "o": {}}');
    Object.defineProperty(value.o, "a", { value: 1, enumerable: true });
    value.m = new Map(); // no way to fill it
    value.e = new RangeError("r");
    value.x = new DOMException("m", "AbortError");
    value.r = /x/gi;
    c = structuredClone(value);
  } finally {
    for (let i = 0; i < patched.length; i++) Object.defineProperty(patched[i][0], patched[i][1], saved[i]);
    delete Object.prototype.a;
    delete Array.prototype[0];
    delete Object.prototype.cause;
  }
  assert.equal(seen, "");
  assert.deepEqual([c.list, c.o, c.e.message, c.x.name, c.r.flags], [[1, 2], { a: 1 }, "r", "AbortError", "gi"]);
});

test("objects with slots of their own are refused", () => {
  const traps = new Proxy({}, { get() { throw new Error("trap"); } });
  const inert = new Proxy({}, new Proxy({}, { get(_, name) { throw new Error(`trap ${String(name)}`); } }));
  const generator = (function* () {})();
  for (const v of [traps, inert, new Proxy([], {}), generator, [].values(), new Map().entries(), new Intl.NumberFormat(), new WeakMap(),
    new FinalizationRegistry(() => {}), Promise.reject(1).catch(() => {}) && Promise.resolve(), new (class extends WeakSet {})()]) {
    assert.throws(() => structuredClone(v), "DataCloneError");
    assert.throws(() => structuredClone({ deep: [new Map([[1, v]])] }), "DataCloneError");
  }
});

test("errors whose properties bite", () => {
  const e = new Error("x");
  Object.defineProperty(e, "name", { get() { throw new RangeError("name"); } });
  assert.throws(() => structuredClone(e), RangeError);
  const own = new Error("x");
  Object.defineProperty(own, "message", { get() { return "never read"; } });
  assert.equal(structuredClone(own).message, "");
  const symbol = new Error("x");
  symbol.name = Symbol("s");
  assert.throws(() => structuredClone(symbol), TypeError);
  Object.defineProperty(symbol, "name", { value: "TypeError" });
  assert.ok(structuredClone(symbol) instanceof TypeError);
});

test("platform objects, deep and shared", async () => {
  const blob = new Blob(["hi"]);
  const error = new DOMException("m", "AbortError");
  const c = structuredClone({ list: [blob, { blob }], error, map: new Map([[blob, error]]) });
  assert.ok(c.list[0] instanceof Blob && c.list[0] === c.list[1].blob && c.list[0] !== blob);
  assert.equal(c.map.get(c.list[0]), c.error);
  assert.equal(await c.list[0].text(), "hi");
  assert.throws(() => structuredClone([blob, { headers: new Headers() }]), "DataCloneError");
  class Mine { headers = 1; }
  assert.deepEqual(structuredClone([blob, new Mine()])[1], { headers: 1 });
  const blobs = Array.from({ length: 1000 }, (_, i) => new Blob([String(i)]));
  assert.equal(await structuredClone(blobs)[999].text(), "999");
});

test("sizes", () => {
  assert.equal(structuredClone(new Array(2 ** 32 - 1)).length, 2 ** 32 - 1);
  assert.equal(structuredClone(new Array(1e5).fill(1.5)).length, 1e5);
  const long = "x".repeat(1 << 20);
  assert.equal(structuredClone({ long }).long, long);
  assert.equal(structuredClone(new Uint8Array(20 << 20)).length, 20 << 20);
  // One string of 1 MB, written a thousand times: more than the isolate may have.
  assert.throws(() => structuredClone(new Array(1000).fill(long)), "DataCloneError");
  assert.throws(() => structuredClone(new Uint8Array(100 << 20)), "DataCloneError"); // no room for a second one
  assert.deepEqual(structuredClone({ after: 1 }), { after: 1 });
});
