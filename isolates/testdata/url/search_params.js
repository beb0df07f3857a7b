// URLSearchParams.

const of = (init) => [...new URLSearchParams(init)];

test("construction", () => {
  assert.deepEqual(of(""), []);
  assert.deepEqual(of(), []);
  assert.deepEqual(of("?a=1&a=2&&b&=x&c=d=e"), [["a", "1"], ["a", "2"], ["b", ""], ["", "x"], ["c", "d=e"]]);
  assert.deepEqual(of("??a=1"), [["?a", "1"]]);
  assert.deepEqual(of("a=b+c&%61=%zz%4&x=%C3%A9%ff"), [["a", "b c"], ["a", "%zz%4"], ["x", "é\ufffd"]]);
  assert.deepEqual(of("a=%2B+%26"), [["a", "+ &"]]);
  assert.deepEqual(of([["x", 1], ["y", null]]), [["x", "1"], ["y", "null"]]);
  assert.deepEqual(of({ a: 1, b: "é" }), [["a", "1"], ["b", "é"]]);
  assert.deepEqual(of(new Map([["m", "n"]])), [["m", "n"]]);
  assert.deepEqual(of(new URLSearchParams("p=q")), [["p", "q"]]);
  assert.deepEqual(of("\ud800=x"), [["\ufffd", "x"]]);
  assert.deepEqual(of({ "\ud835x": "1", xx: "2", "\ud83dx": "3", "\ufffdx": "4" }), [["\ufffdx", "4"], ["xx", "2"]]);
  assert.deepEqual(of(null), [["null", ""]]);
  assert.deepEqual(of(new FormData()), []);
  for (const bad of [[["a"]], [["a", "b", "c"]], [1], ["ab", "cd"]]) assert.throws(() => new URLSearchParams(bad), TypeError, JSON.stringify(bad));
  assert.throws(() => new URLSearchParams({ [Symbol("s")]: 1, get [Symbol.iterator]() { return 5; } }), TypeError);
});

test("append, get, getAll, has, delete, set, size", () => {
  const p = new URLSearchParams();
  p.append("a", "1");
  p.append("a", "2");
  p.append("b", undefined);
  assert.deepEqual([p.get("a"), p.get("z"), p.size], ["1", null, 3]);
  assert.deepEqual(p.getAll("a"), ["1", "2"]);
  assert.deepEqual(p.getAll("z"), []);
  assert.deepEqual([p.has("a"), p.has("a", "2"), p.has("a", "3"), p.has("a", undefined)], [true, true, false, true]);
  p.set("a", "9");
  assert.equal(p.toString(), "a=9&b=undefined");
  p.set("c", "3");
  p.append("c", "4");
  p.delete("c", "3");
  assert.equal(p.toString(), "a=9&b=undefined&c=4");
  p.delete("c", undefined);
  p.delete("nothing");
  assert.equal(p.size, 2);
  for (const call of [() => p.append("x"), () => p.get(), () => p.set("x"), () => p.delete(), () => p.has(), () => p.getAll()]) assert.throws(call, TypeError);
});

test("serialisation", () => {
  const cases = [[" ", "+"], ["*-._", "*-._"], ["~!'()", "%7E%21%27%28%29"], ["é", "%C3%A9"], ["a/b?c#d", "a%2Fb%3Fc%23d"], ["😀", "%F0%9F%98%80"], ["+", "%2B"],
    ["\n", "%0A"], ["\0", "%00"], ["[]{}|^`\"<>", "%5B%5D%7B%7D%7C%5E%60%22%3C%3E"], ["$&,:;=@%", "%24%26%2C%3A%3B%3D%40%25"], ["\ud800", "%EF%BF%BD"]];
  for (const [input, expected] of cases) assert.equal(new URLSearchParams([[input, ""]]).toString(), `${expected}=`, JSON.stringify(input));
});

test("sort is stable and by code units", () => {
  const p = new URLSearchParams("z=b&a=b&z=a&a=a&ﬃ&🌈&=");
  p.sort();
  assert.deepEqual([...p.keys()], ["", "a", "a", "z", "z", "🌈", "ﬃ"]);
  assert.deepEqual(p.getAll("a"), ["b", "a"]);
});

test("iteration is live", () => {
  const p = new URLSearchParams("a=1&b=2&c=3");
  const seen = [];
  for (const [k] of p) {
    seen.push(k);
    if (k === "a") p.delete("b");
  }
  assert.deepEqual(seen, ["a", "c"]);
  assert.equal(p[Symbol.iterator], p.entries);
  assert.deepEqual([...p.values()], ["1", "3"]);
  const it = p.keys();
  assert.equal(it[Symbol.iterator](), it);
  assert.equal(Object.prototype.toString.call(it), "[object URLSearchParams Iterator]");
  assert.deepEqual([it.next().value, it.next().value, it.next().done, it.next().done], ["a", "c", true, true]);
  assert.throws(() => it.next.call({}), TypeError);
  const args = [];
  p.forEach(function (...a) { args.push(a.length, this.x); }, { x: 1 });
  assert.deepEqual(args, [3, 1, 3, 1]);
  assert.throws(() => p.forEach(5), TypeError);
});

test("of a record: keys that become the same are one, with the place of the first and the value of the last", () => {
  assert.deepEqual([...new URLSearchParams({ "x\udc53": "1", a: "2", "x\udc5c": "3", "x\ufffd": "4" })], [["x\ufffd", "4"], ["a", "2"]]);
});
