// node/start.js runs before the code of a worker that has Node's modules: when its module imports pinwheel:node. It
// takes more of the language's functions, defines the globals, and gives the bundle the function by which it has the
// modules. Each module is a feature of its own, whose files run when the bundle comes to it.

"use strict";

const {
  ObjectDefineProperty, ObjectPrototypeHasOwnProperty, ReflectApply, ReflectDefineProperty, ReflectGetOwnPropertyDescriptor, ReflectOwnKeys,
  StringPrototypeSlice, StringPrototypeToUpperCase, TypeError, globalThis, uncurryThis,
} = primordials;
const { lazy } = host;

// take keeps methods of a prototype as <Prefix>Prototype<Name>(self, ...args).
function take(prefix, names) {
  const proto = primordials[`${prefix}Prototype`];
  for (let i = 0; i < names.length; i++) {
    const name = names[i];
    const key = StringPrototypeToUpperCase(name[0]) + StringPrototypeSlice(name, 1);
    primordials[`${prefix}Prototype${key}`] = uncurryThis(proto[name]);
  }
}

take("Array", ["concat", "includes", "pop", "push", "reverse", "shift", "slice", "splice", "unshift"]);
take("String", ["charAt", "split", "trimEnd", "trimStart"]);
take("TypedArray", ["copyWithin", "fill", "indexOf", "lastIndexOf", "reverse"]);
take("RegExp", ["test"]);
take("Promise", ["finally"]);
const { Object } = primordials;
primordials.ObjectGetOwnPropertyDescriptor = Object.getOwnPropertyDescriptor;
primordials.ObjectGetOwnPropertyDescriptors = Object.getOwnPropertyDescriptors;
primordials.ObjectDefineProperties = Object.defineProperties;
primordials.ObjectValues = Object.values;
primordials.ObjectEntries = Object.entries;
primordials.EncodeURIComponent = globalThis.encodeURIComponent;
primordials.SymbolFor = primordials.Symbol.for;

// put gives an object members that scripts see. It copies those of source, which is an object literal.
function put(target, source, enumerable = true) {
  const keys = ReflectOwnKeys(source);
  for (let i = 0; i < keys.length; i++) {
    const d = ReflectGetOwnPropertyDescriptor(source, keys[i]);
    const copy = ObjectPrototypeHasOwnProperty(d, "value")
      ? { __proto__: null, value: d.value, writable: true, enumerable, configurable: true }
      : { __proto__: null, get: d.get, set: d.set, enumerable, configurable: true };
    ReflectDefineProperty(target, keys[i], copy);
  }
  return target;
}

// hide defines a member that is not enumerable.
function hide(target, name, value) {
  ObjectDefineProperty(target, name, { __proto__: null, value, writable: true, enumerable: false, configurable: true });
}

// constant defines a member that scripts cannot change.
function constant(target, name, value, enumerable = true) {
  ObjectDefineProperty(target, name,
    { __proto__: null, value, writable: false, enumerable, configurable: false });
}

// later defines a member that is made when it is first read.
function later(target, name, make) {
  const members = {
    get [name]() {
      const value = make();
      ReflectDefineProperty(target, name, { __proto__: null, value, writable: true, enumerable: true, configurable: true });
      return value;
    },
    set [name](value) {
      ReflectDefineProperty(target, name, { __proto__: null, value, writable: true, enumerable: true, configurable: true });
    },
  };
  const d = ReflectGetOwnPropertyDescriptor(members, name);
  ObjectDefineProperty(target, name,
    { __proto__: null, get: d.get, set: d.set, enumerable: true, configurable: true });
}

internal.node = {
  __proto__: null, constant, hide, later, put, kCustomPromisify: primordials.SymbolFor("nodejs.util.promisify.custom"),
};

// The modules that are there. deploy/bundle/nodecompat.go has these names, too.
const there = {
  __proto__: null,
  assert: true, async_hooks: true, buffer: true, console: true, crypto: true, diagnostics_channel: true, dns: true, events: true,
  http: true, https: true, module: true,
  net: true, os: true, path: true, perf_hooks: true, process: true, punycode: true, querystring: true, stream: true, string_decoder: true,
  timers: true, tls: true, url: true, util: true, zlib: true,
};

// Modules that are a member of another one.
const members = {
  __proto__: null,
  "assert/strict": ["assert", "strict"], "dns/promises": ["dns", "promises"], "path/posix": ["path", "posix"], "path/win32": ["path", "win32"],
  "stream/consumers": ["stream", "consumers"], "stream/promises": ["stream", "promises"], "stream/web": ["stream", "web"],
  "timers/promises": ["timers", "promises"], "util/types": ["util", "types"], sys: ["util"],
  _stream_duplex: ["stream", "Duplex"], _stream_passthrough: ["stream", "PassThrough"], _stream_readable: ["stream", "Readable"],
  _stream_transform: ["stream", "Transform"], _stream_writable: ["stream", "Writable"],
};

function builtin(name) {
  if (typeof name !== "string") throw new TypeError("the name of a module is a string");
  if (name === "cloudflare:node") return internal.nodeModule("http") && internal.node.cloudflare;
  const member = members[name];
  if (member !== undefined) {
    const module = internal.nodeModule(member[0]);
    return member.length === 1 ? module : module[member[1]];
  }
  return there[name] === true ? internal.nodeModule(name) : ReflectApply(internal.nodeModule("absent"), undefined, [name]);
}
internal.node.builtin = builtin;

// find returns the module with this name, with or without node:, or undefined.
internal.node.find = (name) => {
  const bare = primordials.StringPrototypeStartsWith(name, "node:") ? StringPrototypeSlice(name, 5) : name;
  if (there[bare] === true || members[bare] !== undefined) return builtin(bare);
  const absent = internal.nodeModule("absent");
  return absent.names[bare] === true ? ReflectApply(absent, undefined, [bare]) : undefined;
};

// modules returns an object with the names of all modules.
internal.node.modules = () => {
  const names = { __proto__: null };
  const lists = [ReflectOwnKeys(there), ReflectOwnKeys(members), internal.nodeModule("absent").list];
  for (let i = 0; i < lists.length; i++) {
    for (let k = 0; k < lists[i].length; k++) names[lists[i][k]] = true;
  }
  return names;
};

let defined = false;

// nodeExports lists the names that pinwheel:node exports, and their values. V8 asks before any code of the worker runs.
internal.nodeExports = () => {
  if (!defined) {
    defined = true;
    lazy(globalThis, "Buffer", false);
    lazy(globalThis, "process", false);
    hide(globalThis, "global", globalThis);
  }
  return ["builtin", builtin];
};
