// Looking at a value for the log runs none of its code.
test("console.log of a Proxy runs no trap", () => {
  let traps = 0;
  const handler = new Proxy({}, { get() { traps++; return undefined; } });
  console.log(new Proxy({ a: 1 }, handler), [new Proxy(() => {}, handler)], { p: new Proxy([], handler) });
  assert.equal(traps, 0);
});
test("an error that is a Proxy runs no trap when it is thrown into waitUntil or the log", () => {
  let traps = 0;
  const handler = new Proxy({}, { get() { traps++; return undefined; } });
  console.error(new Proxy(new Error("x"), handler));
  assert.equal(traps, 0);
});
test("a pending promise is told from a settled one without waiting for it", () => {
  console.log(new Promise(() => {}), Promise.resolve(1), Promise.reject(new Error("seen")).catch(() => {}));
  assert.ok(true);
});
