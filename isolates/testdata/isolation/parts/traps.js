// Every property that a guest can reach becomes an accessor that notes who reads it of what, every name that the runtime
// uses becomes one of Object.prototype, and every class gets a parent that notes what super() passes. Then the platform is
// used. NAMES are the identifiers in the runtime's source, OWN is the text of this module.
const caught = new Map(); // what, by text
let looked = 0;
let called = 0;
let parents = 0;

const trap = (() => {
  const { apply, construct, defineProperty, getOwnPropertyDescriptor, getPrototypeOf, setPrototypeOf } = Reflect;
  const { Error: E, Function: F, Proxy: P, Set: S } = globalThis;
  const set = Map.prototype.set, has = Set.prototype.has, split = String.prototype.split, includes = String.prototype.includes, map = Map.prototype;
  const text = Function.prototype.toString;
  let on = false;
  let known;
  // who is the nearest function on the stack that is no builtin: "guest", "runtime …" or "native".
  const who = () => {
    const limit = E.stackTraceLimit;
    const prepare = E.prepareStackTrace;
    E.stackTraceLimit = 20;
    E.prepareStackTrace = undefined; // the runtime's would leave out its own frames
    const lines = apply(split, new E().stack, ["\n"]);
    E.stackTraceLimit = limit;
    E.prepareStackTrace = prepare;
    for (let i = 4; i < lines.length; i++) {
      if (apply(includes, lines[i], ["<anonymous>)"])) continue;
      return apply(includes, lines[i], ["pinwheel:runtime"]) ? "runtime" + lines[i] : "guest";
    }
    return "native";
  };
  const note = (what, values) => {
    on = false;
    try {
      for (let i = 0; i < values.length; i++) {
        const is = control(values[i], known, OWN);
        if (is !== undefined) apply(set, caught, [`${what}: ${is}`, who()]);
      }
      const by = who();
      if (by !== "guest" && by !== "native") looked++;
      return by;
    } finally {
      on = true;
    }
  };
  const watch = (path, holder, key, d) => {
    if (!d.configurable || key === "__proto__" || holder === globalThis && key === "Error") return;
    const get = "value" in d ? () => d.value : d.get && function () { return apply(d.get, this, []); };
    defineProperty(holder, key, { __proto__: null, configurable: true, enumerable: d.enumerable,
      get: get && function () {
        if (!on) return apply(get, this, []);
        const by = note(`get ${path}`, [this]), value = apply(get, this, []);
        return by === "guest" || typeof value !== "function" ? value : spy(path, value);
      },
      set(v) {
        if (on) note(`set ${path}`, [this, v]);
        if (d.set) apply(d.set, this, [v]);
        else if ("value" in d) defineProperty(this, key, { __proto__: null, value: v, writable: true, enumerable: true, configurable: true });
      } });
  };
  // spy is a function that notes what it is called with, for what calls it that is not the guest's.
  const spy = (path, f) => new P(f, {
    __proto__: null,
    apply(f, self, args) { if (on) { called++; note(`call of ${path}`, [self, ...args]); } return apply(f, self, args); },
    construct(f, args, target) { if (on) { called++; note(`new ${path}`, args); } return construct(f, args, target); },
  });
  const adopt = (path, Class) => {
    const parent = getPrototypeOf(Class);
    if (parent === null || !("prototype" in Class) || !/^class /.test(apply(text, Class, []))) return;
    const base = parent === F.prototype ? undefined : parent;
    parents++;
    setPrototypeOf(Class, function Parent(...args) {
      if (on) note(`super of ${path}`, args);
      return construct(base ?? Object, args, new.target);
    });
  };
  return {
    set(roots) {
      const objects = [];
      known = new S();
      walk(roots, (path, v) => { known.add(v); objects[objects.length] = [path, v]; });
      for (let i = 0; i < objects.length; i++) if (typeof objects[i][1] === "function") adopt(objects[i][0], objects[i][1]);
      for (let i = 0; i < objects.length; i++) {
        const [path, object] = objects[i];
        if (!path.startsWith("globalThis") && !path.includes("__proto__")) continue;
        for (const key of Reflect.ownKeys(object)) {
          const d = getOwnPropertyDescriptor(object, key);
          if (d.configurable) watch(`${path}.${String(key)}`, object, key, d);
        }
      }
      const more = ["0", "1", "2", "then", "toJSON", Symbol.iterator, Symbol.asyncIterator, Symbol.toPrimitive, Symbol.species, Symbol.isConcatSpreadable, Symbol.match, Symbol.replace, Symbol.split];
      for (let i = 0; i < more.length; i++) NAMES[NAMES.length] = more[i];
      for (let i = 0; i < NAMES.length; i++) {
        if (!getOwnPropertyDescriptor(Object.prototype, NAMES[i])) watch(`Object.prototype.${String(NAMES[i])}`, Object.prototype, NAMES[i], { configurable: true, value: undefined, enumerable: false });
      }
    },
    on() { on = true; },
    off() { on = false; },
  };
})();

const stringify = JSON.stringify, forEach = Map.prototype.forEach, R = Response, apply = Reflect.apply;
let uses = 0;

addEventListener("fetch", (e) => {
  e.respondWith((async () => {
    if (++uses === 1) {
      const before = await exercise(e.request, undefined, e);
      trap.set([...samples(e.request, undefined, e), ["event", e]]);
      return new R(stringify(before));
    }
    trap.on();
    const said = await exercise(e.request, undefined, e);
    trap.off();
    const found = [];
    apply(forEach, caught, [(by, what) => { found[found.length] = `${what} by ${by}`; }]);
    return new R(stringify({ __proto__: null, said, found, looked, called, parents }));
  })());
  trap.on();
});
