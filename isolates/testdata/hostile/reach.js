// No control object, token or internal function can be reached from what guests hold.

const known = new Set();
function classify(value) {
  if (value === null || (typeof value !== "object" && typeof value !== "function")) return;
  if (known.has(value)) return;
  known.add(value);
}

test("everything reachable is an ordinary object of the realm", () => {
  const seen = new Set();
  const queue = [[globalThis, "globalThis"]];
  const samples = { request: new Request("http://h/"), response: new Response("x"), headers: new Headers(), stream: new ReadableStream(), url: new URL("http://h/?a"),
    event: new Event("x"), signal: new AbortController().signal, it: new Headers().entries(), sit: new ReadableStream().values(), form: new FormData(), writer: new WritableStream().getWriter(),
    transform: new TransformStream(), file: new File([], "x"), reader: new ReadableStream().getReader(), decoder: new TextDecoder(), exception: new DOMException("x") };
  for (const [name, value] of Object.entries(samples)) queue.push([value, name]);
  let functions = 0;
  while (queue.length > 0) {
    const [object, path] = queue.pop();
    if (seen.has(object)) continue;
    seen.add(object);
    if (typeof object === "function") functions++;
    const proto = Object.getPrototypeOf(object);
    if (proto === null && object !== Object.prototype) {
      const keys = Reflect.ownKeys(object);
      assert.ok(keys.every((k) => typeof k === "symbol" || !/^(send|ask|entry|FETCH|MODULE|HANDLERS|TOKEN|READABLE)$/.test(k)), path);
    }
    if (proto !== null) queue.push([proto, `${path}.__proto__`]);
    for (const key of Reflect.ownKeys(object)) {
      const d = Reflect.getOwnPropertyDescriptor(object, key);
      for (const value of [d.value, d.get, d.set]) {
        if ((typeof value === "object" && value !== null) || typeof value === "function") queue.push([value, `${path}.${String(key)}`]);
      }
    }
    if (path.length > 200) throw new Error(path);
  }
  assert.ok(functions > 500, "looked around");
  for (const name of ["host", "internal", "primordials"]) assert.equal(typeof globalThis[name], "undefined");
});

test("constructors of instances cannot forge", () => {
  for (const value of [new AbortController().signal, crypto, crypto.subtle, navigator, performance]) {
    assert.throws(() => new value.constructor(), TypeError);
    assert.throws(() => Reflect.construct(value.constructor, [{}]), TypeError);
  }
  for (const it of [new Headers().entries(), new URLSearchParams().keys(), new ReadableStream().values()]) assert.ok(!Object.hasOwn(Object.getPrototypeOf(it), "constructor"));
});

test("stacks show no frames of the runtime's arguments, and prepareStackTrace sees no functions or receivers", async () => {
  let frames;
  Error.prepareStackTrace = (error, sites) => { frames = sites; return "prepared"; };
  try {
    let thrown;
    try {
      new Response("x", { status: 1 });
    } catch (error) {
      thrown = error;
      void error.stack;
    }
    assert.ok(thrown instanceof RangeError);
    for (const site of frames) {
      assert.equal(site.getFunction(), undefined);
      assert.equal(site.getThis(), undefined);
    }
    const target = new EventTarget();
    target.addEventListener("x", () => { void new Error("inside").stack; });
    target.dispatchEvent(new Event("x"));
    for (const site of frames) if (String(site.getFileName()).startsWith("pinwheel:")) assert.equal(site.getFunction(), undefined);
  } finally {
    delete Error.prepareStackTrace;
  }
});

test("caller and arguments of strict functions are out of reach", () => {
  const target = new EventTarget();
  let callers = 0;
  target.addEventListener("x", function listener() {
    try {
      if (listener.caller) callers++;
    } catch { /* strict */ }
  });
  target.dispatchEvent(new Event("x"));
  assert.equal(callers, 0);
});

test("thrown things are described without running them", async () => {
  const seen = [];
  const onerror = (e) => { seen.push(typeof e.message); e.preventDefault(); };
  addEventListener("error", onerror);
  let ran = 0;
  const hostile = [
    { toString() { ran++; throw 1; }, get message() { ran++; return "x"; }, get name() { ran++; return "x"; }, get stack() { ran++; return "x"; } },
    { [Symbol.toPrimitive]() { ran++; } },
    Object.create(null),
    Symbol("s"),
    () => { ran++; },
    Object.defineProperty(new Error("e"), "message", { get() { ran++; return "x"; } }),
    Object.defineProperty(new Error("e"), "stack", { get() { ran++; return "x"; } }),
    Object.assign(Object.create(Error.prototype), { name: 5 }),
    undefined, null, 10n, NaN,
  ];
  for (const value of hostile) reportError(value);
  removeEventListener("error", onerror);
  assert.deepEqual(seen, hostile.map(() => "string"));
  assert.equal(ran, 0);
});

test("revoked and throwing proxies can be thrown and logged", () => {
  const seen = [];
  const onerror = (e) => { seen.push(typeof e.message); e.preventDefault(); };
  addEventListener("error", onerror);
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  const angry = new Proxy(function () {}, new Proxy({}, { get() { throw new Error("trap"); } }));
  for (const value of [proxy, angry, new Proxy([], {}), new Proxy(new Error("x"), {})]) {
    reportError(value);
    console.log(value, { value }, [value]);
  }
  removeEventListener("error", onerror);
  assert.equal(seen.length, 4);
});
