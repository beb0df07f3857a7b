// Headers.

test("construction", () => {
  assert.deepEqual([...new Headers()], []);
  assert.deepEqual([...new Headers(undefined)], []);
  assert.deepEqual([...new Headers({})], []);
  assert.deepEqual([...new Headers({ B: "2", a: 1 })], [["a", "1"], ["b", "2"]]);
  assert.deepEqual([...new Headers([["x", "1"], ["X", "2"]])], [["x", "1, 2"]]);
  assert.deepEqual([...new Headers(new Headers({ a: "b" }))], [["a", "b"]]);
  assert.deepEqual([...new Headers(new Map([["k", "v"]]))], [["k", "v"]]);
  for (const bad of [null, 5, "x", true, Symbol(), [["a"]], [["a", "b", "c"]], ["ab"], [1]]) assert.throws(() => new Headers(bad), TypeError);
  assert.throws(() => new Headers({ "a b": "x" }), TypeError);
  assert.throws(() => new Headers({ a: "x\ny" }), TypeError);
  assert.throws(() => new Headers({ a: "€" }), TypeError);
  assert.throws(() => new Headers({ "é": "x" }), TypeError);
  assert.throws(() => new Headers({ [Symbol("s")]: "x" }), TypeError);
});

test("names", () => {
  const h = new Headers();
  for (const bad of ["", " ", "a b", "a:", "é", "a\0", "(x)", "a\r\n", "{", "a\x7f", "\u0100"]) {
    assert.throws(() => h.append(bad, "v"), TypeError, JSON.stringify(bad));
    assert.throws(() => h.get(bad), TypeError);
    assert.throws(() => h.has(bad), TypeError);
    assert.throws(() => h.delete(bad), TypeError);
    assert.throws(() => h.set(bad, "v"), TypeError);
  }
  h.append("!#$%&'*+-.^_`|~09azAZ", "ok");
  assert.equal(h.get("!#$%&'*+-.^_`|~09AZaz"), "ok");
});

test("values", () => {
  const h = new Headers();
  const cases = { " a ": "a", "\t\r\n x\ty \n": "x\ty", "": "", "   ": "", "\xff\x80": "\xff\x80", "a,b": "a,b", "\v": "\v" };
  for (const [given, kept] of Object.entries(cases)) {
    h.set("k", given);
    assert.equal(h.get("k"), kept, JSON.stringify(given));
  }
  for (const bad of ["a\0b", "a\nb", "a\rb", "Ā"]) assert.throws(() => h.set("k", bad), TypeError, JSON.stringify(bad));
  const long = "x".repeat(100);
  for (const bad of ["\0", "\n", "\r"]) for (const value of [long + bad + long, "\n" + long + bad + "y", bad + long + bad + long]) assert.throws(() => h.set("k", value), TypeError);
  h.set("k", "\n" + long + "\r\n");
  assert.equal(h.get("k"), long);
  h.set("k", undefined);
  assert.equal(h.get("k"), "undefined");
  h.set("k", null);
  assert.equal(h.get("K"), "null");
});

test("append, set, delete, has, get", () => {
  const h = new Headers({ a: "1" });
  h.append("A", "2");
  h.append("a", "");
  assert.equal(h.get("a"), "1, 2, ");
  h.set("a", "9");
  assert.equal(h.get("a"), "9");
  h.append("b", "x");
  h.append("a", "10");
  h.set("A", "z");
  assert.deepEqual([...h], [["a", "z"], ["b", "x"]]);
  h.delete("A");
  h.delete("a");
  assert.deepEqual([h.has("a"), h.has("B"), h.get("a")], [false, true, null]);
  for (const call of [() => h.append("x"), () => h.set("x"), () => h.get(), () => h.has(), () => h.delete(), () => h.append()]) assert.throws(call, TypeError);
  assert.throws(() => Headers.prototype.get.call({}, "x"), TypeError);
});

test("set-cookie is never combined", () => {
  const h = new Headers([["set-cookie", "a=1"], ["x", "y"], ["Set-Cookie", "b=2"], ["b", "1"]]);
  assert.deepEqual(h.getSetCookie(), ["a=1", "b=2"]);
  assert.deepEqual([...h], [["b", "1"], ["set-cookie", "a=1"], ["set-cookie", "b=2"], ["x", "y"]]);
  assert.equal(h.get("set-cookie"), "a=1, b=2");
  h.append("set-cookie", "c=3");
  assert.equal(h.getSetCookie().length, 3);
  h.set("Set-Cookie", "d=4");
  assert.deepEqual(h.getSetCookie(), ["d=4"]);
  h.delete("set-cookie");
  assert.deepEqual(h.getSetCookie(), []);
  const copy = new Headers(new Headers([["set-cookie", "a"], ["set-cookie", "b"]]));
  assert.deepEqual(copy.getSetCookie(), ["a", "b"]);
});

test("iteration: sorted, lower case, live", () => {
  const h = new Headers([["C", "3"], ["a", "1"], ["B", "2"]]);
  assert.deepEqual([...h.keys()], ["a", "b", "c"]);
  assert.deepEqual([...h.values()], ["1", "2", "3"]);
  assert.equal(h[Symbol.iterator], h.entries);
  const seen = [];
  for (const [k] of h) { seen.push(k); if (k === "a") { h.append("bb", "x"); h.delete("c"); } }
  assert.deepEqual(seen, ["a", "b", "bb"]);
  const args = [];
  h.forEach(function (v, k, o) { args.push(v, k, o === h, this.t); }, { t: 1 });
  assert.deepEqual(args.slice(0, 4), ["1", "a", true, 1]);
  const it = h.entries();
  assert.equal(Object.prototype.toString.call(it), "[object Headers Iterator]");
  const proto = Object.getPrototypeOf(it);
  assert.equal(Object.getPrototypeOf(proto), Object.getPrototypeOf(Object.getPrototypeOf([][Symbol.iterator]())));
  assert.deepEqual(Object.getOwnPropertyNames(proto), ["next"]);
  assert.ok(Object.getOwnPropertyDescriptor(proto, "next").enumerable);
  assert.throws(() => proto.next(), TypeError);
  assert.throws(() => proto.next.call(new URLSearchParams().entries()), TypeError);
});

test("conversion order and side effects", () => {
  const order = [];
  const h = new Headers();
  h.append({ toString() { order.push("name"); return "n"; } }, { toString() { order.push("value"); return "v"; } });
  assert.deepEqual(order, ["name", "value"]);
  const keys = [];
  new Headers(new Proxy({ a: "1", b: "2" }, {
    ownKeys(t) { keys.push("ownKeys"); return Reflect.ownKeys(t); },
    getOwnPropertyDescriptor(t, k) { keys.push(`desc ${String(k)}`); return Reflect.getOwnPropertyDescriptor(t, k); },
    get(t, k) { keys.push(`get ${String(k)}`); return t[k]; },
  }));
  assert.deepEqual(keys, ["get Symbol(Symbol.iterator)", "ownKeys", "desc a", "get a", "desc b", "get b"]);
});
