// setTimeout, setInterval, their clears, queueMicrotask and reportError.

const wait = (ms = 0) => new Promise((resolve) => setTimeout(resolve, ms));

test("ids are positive integers and rise", () => {
  const a = setTimeout(() => {}, 0);
  const b = setInterval(() => {}, 1000);
  assert.ok(Number.isInteger(a) && a > 0 && b > a);
  clearTimeout(b);
  clearInterval(a);
});

test("arguments, this, and order of equal delays", async () => {
  const seen = [];
  setTimeout(function (...args) { seen.push([this === globalThis, ...args]); }, 1, "a", 2);
  setTimeout(() => seen.push("b"), 1);
  setTimeout(() => seen.push("c"), 1);
  await wait(10);
  assert.deepEqual(seen, [[true, "a", 2], "b", "c"]);
});

test("microtasks run between timers", async () => {
  const seen = [];
  setTimeout(() => { seen.push(1); Promise.resolve().then(() => seen.push("m")); }, 1);
  await wait(5);
  setTimeout(() => seen.push(2), 1);
  await wait(10);
  assert.deepEqual(seen, [1, "m", 2]);
});

test("clear before, within and after", async () => {
  let n = 0;
  const id = setTimeout(() => n++, 1);
  clearTimeout(id);
  clearTimeout(id);
  clearTimeout(undefined);
  clearTimeout("x");
  clearTimeout(-5);
  clearInterval();
  let runs = 0;
  await new Promise((resolve) => {
    const i = setInterval(() => {
      if (++runs === 3) {
        clearInterval(i);
        setTimeout(resolve, 10);
      }
    }, 1);
  });
  assert.deepEqual([n, runs], [0, 3]);
});

test("clearTimeout converts its argument", async () => {
  let n = 0;
  clearTimeout(String(setTimeout(() => n++, 1)));
  clearTimeout({ valueOf: () => setTimeout(() => n++, 1) });
  await wait(5);
  assert.equal(n, 0);
});

test("strange delays are zero", async () => {
  let n = 0;
  for (const delay of [undefined, null, NaN, -1, "x", -Infinity, 2 ** 32, {}]) setTimeout(() => n++, delay);
  await wait(20);
  assert.equal(n, 8);
});

test("handlers that are not functions", () => {
  assert.throws(() => setTimeout("1", 0), TypeError);
  assert.throws(() => setInterval({}, 0), TypeError);
  assert.throws(() => setTimeout(), TypeError);
});

test("exceptions in timers are reported and stop nothing", async () => {
  const seen = [];
  const onerror = (e) => { seen.push(e.error); e.preventDefault(); };
  addEventListener("error", onerror);
  setTimeout(() => { throw "expected"; }, 1);
  setTimeout(() => seen.push("next"), 2);
  await wait(20);
  removeEventListener("error", onerror);
  assert.deepEqual(seen, ["expected", "next"]);
});

test("queueMicrotask", async () => {
  const seen = [];
  queueMicrotask(function () { seen.push(this === undefined || this === globalThis, arguments.length); });
  Promise.resolve().then(() => seen.push("p"));
  queueMicrotask(() => seen.push("q"));
  seen.push("sync");
  await wait();
  assert.deepEqual(seen, ["sync", true, 0, "p", "q"]);
  assert.throws(() => queueMicrotask(), TypeError);
  assert.throws(() => queueMicrotask(5), TypeError);
});

test("queueMicrotask reports exceptions", async () => {
  let got;
  const onerror = (e) => { got = e.error; e.preventDefault(); };
  addEventListener("error", onerror);
  const error = new Error("expected");
  queueMicrotask(() => { throw error; });
  await wait();
  removeEventListener("error", onerror);
  assert.equal(got, error);
});

test("setTimeout waits about as long as told", async () => {
  const start = performance.now();
  await wait(20);
  assert.ok(performance.now() - start >= 19, "not early");
});
