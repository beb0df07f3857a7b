// walk visits every object that can be reached from roots, [path, value] pairs: own properties, accessors, prototypes,
// symbols, elements of maps and sets, and what getters give. It returns how many it saw.
const walk = (() => {
  const { apply, getOwnPropertyDescriptor, getPrototypeOf, ownKeys } = Reflect;
  const forEach = { Map: Map.prototype.forEach, Set: Set.prototype.forEach };
  return (roots, visit) => {
    const seen = new Set();
    const queue = [...roots];
    for (let i = 0; i < queue.length; i++) {
      const [path, value] = queue[i];
      if (value === null || (typeof value !== "object" && typeof value !== "function") || seen.has(value)) continue;
      seen.add(value);
      visit(path, value);
      queue.push([path + ".__proto__", getPrototypeOf(value)]);
      for (const key of ownKeys(value)) {
        const d = getOwnPropertyDescriptor(value, key);
        const at = `${path}.${String(key)}`;
        queue.push([at, d.value], [at + ":get", d.get], [at + ":set", d.set]);
      }
      // What an instance shows by the getters of its classes.
      if (typeof value === "object" && path.split(".").length < 6) {
        for (let proto = getPrototypeOf(value); proto; proto = getPrototypeOf(proto)) {
          for (const key of ownKeys(proto)) {
            const d = getOwnPropertyDescriptor(proto, key);
            if (d.get) try { queue.push([`${path}.${String(key)}()`, apply(d.get, value, [])]); } catch { /* a brand check */ }
          }
        }
      }
      for (const name of ["Map", "Set"]) try { apply(forEach[name], value, [(x, k) => queue.push([path + "[]", x], [path + "[k]", k])]); } catch { /* none */ }
    }
    return seen.size;
  };
})();

// control says what of the runtime's own a value is, or undefined. Internal objects have no prototype, or that of a class
// which is cut off from Object.prototype; internal functions are no methods that a guest can see, and are not the guest's text. NATIVES are the names of the functions
// that the runtime has of C++.
const control = (() => {
  const { apply, getOwnPropertyDescriptor, getPrototypeOf, ownKeys } = Reflect;
  const text = Function.prototype.toString, includes = String.prototype.includes, has = Set.prototype.has;
  const top = Object.prototype;
  const natives = new Set(NATIVES);
  const allowed = new Set([Array.prototype[Symbol.unscopables], top]); // null prototypes of ECMAScript
  const control = (value, known, own, deep = true) => {
    if (value === null || (typeof value !== "object" && typeof value !== "function") || apply(has, allowed, [value])) return undefined;
    if (typeof value === "function") {
      const source = apply(text, value, []);
      if (apply(includes, source, ["internal.enter("])) return "the entry function";
      if (known === undefined || apply(has, known, [value])) return undefined;
      if (apply(includes, source, ["[native code]"])) return apply(has, natives, [value.name]) ? `host.${value.name}` : undefined;
      return apply(includes, own, [source]) ? undefined : `a function of the runtime: ${source.slice(0, 80)}`;
    }
    const proto = getPrototypeOf(value);
    if (proto === null || (getPrototypeOf(proto) === null && proto !== top)) {
      const keys = ownKeys(value);
      if (value[Symbol.toStringTag] === "Module" || keys.length === 1 && keys[0] === "stack") return undefined; // the latter is console.trace()'s
      if (keys.length > 3 && apply(includes, keys.map(String).join(), ["bubbles"])) return undefined; // what a class of events is given
      return `an internal object {${keys.map(String).join()}}`;
    }
    if (known === undefined || apply(has, known, [value])) return undefined;
    // An instance of a class that is not the guest's, or an object with functions that are not.
    const maker = apply(has, known, [proto]) ? undefined : getOwnPropertyDescriptor(proto, "constructor")?.value;
    if (typeof maker === "function" && control(maker, known, own) !== undefined) return `an instance of ${maker.name}`;
    const keys = deep ? ownKeys(value) : [];
    for (let i = 0; i < keys.length && i < 50; i++) {
      const inner = control(getOwnPropertyDescriptor(value, keys[i])?.value, known, own, false);
      if (inner !== undefined) return `an object with ${String(keys[i])}, ${inner}`;
    }
    return undefined;
  };
  return control;
})();

// samples are values of every kind that a handler can get hold of.
function samples(request, env, ctx) {
  const controller = new AbortController();
  const stream = new ReadableStream({ type: "bytes" });
  return Object.entries({
    globalThis, request, env, ctx, response: new Response("x"), headers: new Headers({ a: "b" }), url: new URL("http://h/?a"), stream,
    reader: stream.getReader({ mode: "byob" }), transform: new TransformStream(), writer: new WritableStream().getWriter(), controller,
    any: AbortSignal.any([controller.signal]), event: new Event("x"), custom: new CustomEvent("x"), form: new FormData(), file: new File([], "x"), blob: new Blob(["x"]),
    iterators: [new Headers().entries(), new URLSearchParams().keys(), new FormData().values(), new ReadableStream().values(), [].values(), new Map().keys(), new Set().values(), "".matchAll(/x/g), ""[Symbol.iterator](), Iterator.from({ next() {} })],
    functions: [async () => {}, function* () {}, async function* () {}, (function* () {})(), (async function* () {})()],
    errors: [new DOMException("x"), new TypeError("x"), new AggregateError([])], promise: fetch("http://127.0.0.1:1/").catch(() => {}), key: crypto,
    channel: new MessageChannel(), broadcast: new BroadcastChannel("x"), message: new MessageEvent("x"), mark: new PerformanceMark("x"), measure: performance.measure("x"), source: (() => { const s = new EventSource("http://127.0.0.1:1/"); s.close(); return s; })(), pattern: new URLPattern(), matched: new URLPattern().exec(), als: new AsyncLocalStorage(), bound: AsyncLocalStorage.bind(() => {}), variable: new AsyncContext.Variable(), snapshot: new AsyncContext.Snapshot(),
    strategy: new CountQueuingStrategy({ highWaterMark: 1 }), encoder: new TextEncoder(), decoder: new TextDecoder(), proxies: Proxy.revocable({}, {}),
    caller: (() => { try { return walk.caller; } catch (e) { return e; } })(),
    bytes: [new Uint8Array(1), new DataView(new ArrayBuffer(1)), new ArrayBuffer(1, { maxByteLength: 2 })],
    keys: crypto.subtle.importKey("raw", new Uint8Array(1), "PBKDF2", false, ["deriveBits"]), intl: [new Intl.NumberFormat(), new Intl.Segmenter().segment("x")], regexp: /(x)/.exec("x"), weak: [new WeakRef({}), new FinalizationRegistry(() => {})],
  });
}

// sites are what Error.prepareStackTrace is shown inside all kinds of callbacks of the runtime: errors and call sites.
async function sites() {
  const found = [];
  const before = Error.prepareStackTrace;
  Error.prepareStackTrace = (error, list) => { found.push(error, ...list); return "prepared"; };
  Error.stackTraceLimit = 100;
  const look = () => { void new Error("look").stack; };
  const provoke = async (f) => { try { await f(); } catch (e) { found.push(e); void e?.stack; } };
  const target = new EventTarget();
  target.addEventListener("x", look);
  target.dispatchEvent(new Event("x"));
  await provoke(() => new Headers({ *[Symbol.iterator]() { look(); yield ["a", "b"]; } }));
  await provoke(() => new Response("x", { get status() { look(); return 1; } }));
  await provoke(() => structuredClone({ get a() { look(); throw new Error("clone"); } }));
  await provoke(() => fetch("http://127.0.0.1:1/"));
  await provoke(() => new URL("nowhere"));
  await provoke(() => JSON.parse("{"));
  await provoke(() => new Promise((done) => setTimeout(() => { look(); done(); }, 1)));
  await provoke(() => new Promise((done) => queueMicrotask(() => { look(); done(); })));
  await provoke(() => new Response(new ReadableStream({ pull(c) { look(); c.close(); } })).text());
  await provoke(() => new ReadableStream({ start(c) { c.enqueue(1); c.close(); } }).pipeTo(new WritableStream({ write() { look(); throw new Error("sink"); } })));
  console.log({ get x() { look(); return 1; } });
  console.trace("here");
  Error.prepareStackTrace = before;
  Error.stackTraceLimit = 10;
  return found;
}
