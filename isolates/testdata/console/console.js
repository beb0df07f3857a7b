// The console: its shape, and that looking at a value never runs it.

test("shape", () => {
  const methods = ["assert", "clear", "count", "countReset", "debug", "dir", "dirxml", "error", "group", "groupCollapsed", "groupEnd", "info", "log", "table", "time", "timeEnd", "timeLog",
    "trace", "warn"];
  assert.deepEqual(Object.keys(console).sort(), methods);
  assert.equal(Object.prototype.toString.call(console), "[object console]");
  const d = Object.getOwnPropertyDescriptor(globalThis, "console");
  assert.deepEqual([d.writable, d.enumerable, d.configurable], [true, false, true]);
  assert.notEqual(Object.getPrototypeOf(console), Object.prototype);
  assert.equal(Object.getPrototypeOf(Object.getPrototypeOf(console)), Object.prototype);
  for (const name of methods) {
    assert.equal(console[name].name, name);
    assert.ok(!("prototype" in console[name]));
  }
  const { log } = console;
  assert.equal(log("no receiver needed"), undefined);
});

test("getters, toString, toJSON and traps are not run", () => {
  let ran = 0;
  const count = () => { ran++; return "x"; };
  const value = {
    get a() { return count(); },
    set b(v) { count(); },
    toString: count, toJSON: count, valueOf: count, inspect: count,
    [Symbol.toPrimitive]: count,
    [Symbol.for("nodejs.util.inspect.custom")]: count,
    get [Symbol.toStringTag]() { return count(); },
    get constructor() { return count(); },
    then: count,
  };
  for (const method of ["log", "info", "debug", "warn", "error", "dir", "trace", "table"]) console[method](value);
  console.log("%o %O %j %d %i %f", value, value, value, value, value, value);
  console.log([value], new Map([[value, value]]), new Set([value]), Object.assign(() => {}, { value }));
  console.assert(false, value);
  assert.equal(ran, 0);
});

test("every kind of value can be logged", () => {
  const cycle = { name: "c" };
  cycle.cycle = cycle;
  const values = [undefined, null, true, 0, -0, NaN, 10n, 2n ** 4000n, "s", Symbol("y"), Symbol(), () => {}, class A {}, async () => {}, function* g() {}, [], [1, , 3], [[[[[1]]]]], {}, { a: { b: { c: { d: 1 } } } },
    cycle, new Map([[cycle, cycle]]), new Set(), new Date(0), new Date(NaN), /x/g, new Error("e"), new Error("e", { cause: new Error("c") }), new AggregateError([new Error("1")], "m"),
    new DOMException("d", "AbortError"), new ArrayBuffer(100), new Uint8Array(300), new DataView(new ArrayBuffer(1)), new WeakMap(), new WeakSet(), new WeakRef({}), Promise.resolve(1), Promise.reject(1).catch(() => {}),
    new Boolean(true), new String("boxed"), Object(Symbol()), Object(1n), Object.create(null), Object.create({ constructor: 5 }), new (class extends Map {})(), new Proxy({ a: 1 }, {}), globalThis, new Request("http://h/"), new Response("x"),
    new Headers({ a: "b" }), new URL("http://h/?a#b"), new URLSearchParams("a=b"), new FormData(), new Blob(["x"]), new File([], "n"), new ReadableStream(), new Event("x"), new AbortController(), "x".repeat(100000),
    new Array(1000000), Array.from({ length: 5000 }, (_, i) => i), Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`k${i}`, i])), (function () { return arguments; })(1, 2)];
  for (const value of values) {
    console.log(value);
    console.log("text", value, [value], { value });
    assert.ok(true);
  }
});

test("groups, counts, timers, tables", () => {
  for (let i = 0; i < 100; i++) console.group("g", i);
  console.log("a\nb");
  for (let i = 0; i < 200; i++) console.groupEnd();
  console.count();
  console.count("x");
  console.countReset("x");
  console.countReset("nothing");
  console.time();
  console.time();
  console.timeLog();
  console.timeEnd();
  console.timeEnd("nothing");
  console.table();
  console.table([[1, 2], { a: 1 }, "x"], ["a"]);
  console.table(new Map([[1, 2]]));
  console.assert(true, "not shown");
  console.log();
  console.log("%s");
  console.log("%s %d %i %f %o %O %j %c%% %x", "a", "1.5", "2.7", "3.5", {}, {}, {}, "css");
  assert.ok(true);
});

test("what has many indices is logged without a list of them", () => {
  const time = (f) => {
    const before = performance.now();
    f();
    return performance.now() - before;
  };
  for (const value of [new Uint8Array(1 << 18), new Array(1 << 18).fill(1), new String("x".repeat(1 << 18))]) {
    value.other = 1;
    const list = time(() => Object.keys(value));
    let log = Infinity; // the shortest of ten: a busy machine takes some of it
    for (let i = 0; i < 10 && log > list / 2; i++) log = Math.min(log, time(() => console.log(value)));
    assert.ok(log <= list / 2, `${log} ms, a list takes ${list} ms`);
  }
});
