// node/absent.js makes the modules of Node that are not there. They can be imported, since many packages do so for parts
// that a worker never uses. What is used of them throws, and says what to use instead.

"use strict";

const {
  Error, ObjectCreate, ObjectPrototype, Proxy, ReflectApply, StringPrototypeIndexOf, StringPrototypeSlice,
} = primordials;
const { coded, put } = internal.node;

const noSockets = "use node:net or fetch(); a worker has no datagrams";
const noFiles = "a worker has no files: import .json, .txt, .html, .md, .csv and .sql files, which are put into the bundle";
const noThreads = "use env.QUEUE.send(), which has another event run";
const noProcess = "a worker has no process of its own";

const instead = {
  __proto__: null,
  child_process: noProcess, cluster: noProcess,
  dgram: noSockets, domain: "use AsyncLocalStorage", fs: noFiles,
  http2: "use fetch() or node:http",
  inspector: "write to the console", readline: "a worker has no terminal",
  repl: "a worker has no terminal", sqlite: "use a database with an HTTP API, with fetch()", sea: noProcess,
  test: "run tests outside the worker", trace_events: "write to the console",
  tty: "a worker has no terminal", v8: "use structuredClone()", vm: "a worker runs only the code of its bundle",
  wasi: "a worker has no files and no processes for it", worker_threads: noThreads,
};

// What some of these modules have all the same: constants by which packages find out where they run, and what the web
// platform has.
const have = {
  __proto__: null,
  cluster: () => ({ isMaster: true, isPrimary: true, isWorker: false }),
  tty: () => ({ isatty() { return false; } }),
  worker_threads: () => ({ isMainThread: true, parentPort: null, resourceLimits: {}, threadId: 0, workerData: null }),
};

const silent = { __proto__: null, then: true, toJSON: true, asymmetricMatch: true, $$typeof: true, nodeType: true, constructor: true };

// missing is the value of a name that a module does not have here: a function that cannot be called. It may be extended
// and have members, because modules do that when they are loaded.
function missing(module, path) {
  const top = StringPrototypeIndexOf(module, "/") === -1 ? module
    : StringPrototypeSlice(module, 0, StringPrototypeIndexOf(module, "/"));
  const refuse = () => {
    throw coded(Error, "ERR_METHOD_NOT_IMPLEMENTED", `node:${module} has no ${path} in a worker: ${instead[top] ?? "it is not there yet"}`);
  };
  const target = function () {};
  const known = { __proto__: null };
  return new Proxy(target, {
    __proto__: null,
    apply: refuse,
    construct: refuse,
    get(_, name) {
      if (name === "prototype") return target.prototype;
      if (name === "name") return path;
      if (typeof name === "symbol" || silent[name] === true) return undefined;
      return known[name] ??= missing(module, `${path}.${name}`);
    },
  });
}

const made = { __proto__: null };

// absent returns the module. Its names are inherited, so that copies of its own names, which bundles make, have them.
const absent = (module) => {
  if (made[module] !== undefined) return made[module];
  const known = { __proto__: null };
  const names = new Proxy(ObjectCreate(ObjectPrototype), {
    __proto__: null,
    get(_, name) {
      if (typeof name === "symbol" || silent[name] === true || name === "__esModule") return undefined;
      return known[name] ??= missing(module, name);
    },
    has: () => false,
  });
  const object = ObjectCreate(names);
  if (have[module] !== undefined) put(object, ReflectApply(have[module], undefined, []));
  made[module] = object;
  return object;
};

// The names of these modules, for who asks whether there is one.
const names = [
  "child_process", "cluster", "constants", "dgram", "domain", "fs", "fs/promises", "http2",
  "inspector", "inspector/promises", "readline", "readline/promises", "repl", "sqlite", "trace_events", "tty",
  "v8", "vm", "wasi", "worker_threads",
];
absent.names = { __proto__: null };
absent.list = names;
for (let i = 0; i < names.length; i++) absent.names[names[i]] = true;
internal.nodeModules.absent = absent;
