// import.meta, and what import() of an unknown module does.

test("import.meta.url is an absolute file: URL", () => {
  assert.equal(import.meta.url, "file:///js.js");
  assert.equal(new URL("./lib/x.wasm?a#b", import.meta.url).href, "file:///lib/x.wasm?a#b");
  assert.equal(new URL("../../data.json", import.meta.url).pathname, "/data.json");
  assert.equal(new URL(import.meta.url).protocol, "file:");
});

test("import.meta is an extensible object of its own, the same each time", () => {
  assert.ok(import.meta === import.meta);
  assert.equal(Object.keys(import.meta).join(), "url");
  assert.equal(Object.getPrototypeOf(import.meta), null);
  import.meta.custom = 1;
  assert.equal(import.meta.custom, 1);
  const d = Object.getOwnPropertyDescriptor(import.meta, "url");
  assert.ok(d.writable && d.enumerable && d.configurable);
  assert.equal(import.meta.env?.MODE, undefined);
});

test("import() rejects with a TypeError, whatever is patched", async () => {
  const { then } = Promise.prototype;
  const { TypeError: Real } = globalThis;
  Promise.prototype.then = () => { throw new Error("patched"); };
  globalThis.TypeError = class Forged {};
  let caught;
  try {
    await import("./no" + ".js");
  } catch (e) {
    caught = e;
  } finally {
    Promise.prototype.then = then;
    globalThis.TypeError = Real;
  }
  assert.ok(caught instanceof TypeError);
  assert.equal(caught.message, 'cannot import "./no.js": imports are bundled at deploy');
  assert.ok(import("./x" + ".js").catch(() => {}) instanceof Promise);
});
