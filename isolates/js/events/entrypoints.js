// events/entrypoints.js is what a worker may import from "cloudflare:workers", and the classes that it exports. An
// instance of such a class answers one event.

"use strict";

const {
  Error, List, ObjectDefineProperty, ObjectFreeze, ReflectApply, ReflectConstruct, ReflectGetOwnPropertyDescriptor, ReflectGetPrototypeOf,
  ReflectOwnKeys, TypeError,
} = primordials;
const { defineInterface, isObject, requireArguments } = internal;

// ---- the classes ----

class WorkerEntrypoint {
  ctx;
  env;
  constructor(ctx, env) {
    if (!isObject(ctx)) throw new TypeError("new WorkerEntrypoint: the first argument is not a ctx");
    this.ctx = ctx;
    this.env = env;
  }
}
defineInterface(WorkerEntrypoint, "WorkerEntrypoint", true);

class RpcTarget {}
defineInterface(RpcTarget, "RpcTarget", true);

const entrypointPrototype = WorkerEntrypoint.prototype;

function extendsEntrypoint(Class) {
  for (let p = Class.prototype; isObject(p); p = ReflectGetPrototypeOf(p)) {
    if (p === entrypointPrototype) return true;
  }
  return false;
}

// ---- the exports of the worker's module ----

let exported; // the namespace of the module
let bindings = null; // ctx.exports, to each entrypoint of the module; null until it is read
let exportNames = null; // the names in it; null until the module is evaluated

// ownExports returns ctx.exports. Until the module is evaluated it has nothing.
function ownExports() {
  if (bindings === null) {
    bindings = {};
    if (exportNames !== null) fill();
  }
  return bindings;
}
internal.ownExports = ownExports;

function fill() {
  for (let i = 0; i < exportNames.length; i++) {
    ObjectDefineProperty(bindings, exportNames[i], { __proto__: null, value: internal.newExport(exportNames[i]), enumerable: true });
  }
  ObjectFreeze(bindings);
}

// keepExports is called once, when the module is evaluated.
internal.keepExports = (namespace) => {
  exported = namespace;
  exportNames = new List();
  if (isObject(namespace)) {
    const names = ReflectOwnKeys(namespace);
    for (let i = 0; i < names.length; i++) {
      const name = names[i];
      if (typeof name !== "string") continue;
      const isClass = internal.entrypoint(name) !== undefined;
      entrypoints = entrypoints || isClass;
      if (isClass || name === "default" || answers(namespace[name])) {
        exportNames[exportNames.length] = name;
      }
    }
  }
  if (bindings !== null) fill();
};

let entrypoints = false; // whether the module exports a class that extends WorkerEntrypoint
internal.hasEntrypoints = () => entrypoints;

// answers is like hasHandlers, of any export: a getter or a Proxy may throw.
function answers(value) {
  try {
    return hasHandlers(value);
  } catch {
    return false;
  }
}

function hasHandlers(value) {
  return isObject(value) && typeof value !== "function" && typeof value.fetch === "function";
}

// entrypoint returns the class that the module exports by this name, or undefined. It is one that extends
// WorkerEntrypoint.
internal.entrypoint = (name) => {
  const Class = isObject(exported) ? exported[name] : undefined;
  return typeof Class === "function" && extendsEntrypoint(Class) ? Class : undefined;
};

// newInstance makes the instance that answers one event.
internal.newInstance = (Class, ctx) => ReflectConstruct(Class, [ctx, internal.env()]);

// callMethod calls a method of an instance. It throws a TypeError if the instance has no such method.
internal.callMethod = (instance, name, args) => {
  const method = instance[name];
  if (typeof method !== "function") throw new TypeError(`${name} is not a method of the class`);
  return ReflectApply(method, instance, args);
};

// methodOf returns a handler that calls this method of a new instance, or undefined if the class has none.
internal.methodOf = (Class, name) => {
  if (typeof Class.prototype[name] !== "function") return undefined;
  return (argument, env, ctx) => internal.callMethod(internal.newInstance(Class, ctx), name, [argument]);
};

// callEntrypoint calls a method for another worker. Only methods that the class and its parents define can be called so.
internal.callEntrypoint = (entrypoint, name, args, ctx) => {
  const exportName = entrypoint === "" ? "default" : entrypoint;
  const Class = internal.entrypoint(exportName);
  if (Class === undefined && !(isObject(exported) && isObject(exported[exportName]))) {
    throw new TypeError(`the worker has no entrypoint ${exportName}: export a class that extends WorkerEntrypoint`);
  }
  const method = Class === undefined ? undefined : methodNamed(Class, name); // an object has handlers only
  const instance = method === undefined ? undefined : internal.newInstance(Class, ctx);
  if (method === undefined || ReflectGetOwnPropertyDescriptor(instance, name) !== undefined) {
    throw new TypeError(`The RPC receiver does not implement the method "${name}".`);
  }
  return ReflectApply(method, instance, args);
};

// methodNamed returns the method that a class or one of its parents defines, or undefined.
function methodNamed(Class, name) {
  if (name === "constructor") return undefined;
  for (let p = Class.prototype; p !== entrypointPrototype; p = ReflectGetPrototypeOf(p)) {
    const own = ReflectGetOwnPropertyDescriptor(p, name);
    if (own !== undefined) return typeof own.value === "function" ? own.value : undefined;
  }
  return undefined;
}

// fetchOf returns the fetch handler of a named entrypoint, or undefined: a class, or an object with handlers.
internal.fetchOf = (entrypoint) => {
  const Class = internal.entrypoint(entrypoint);
  if (Class !== undefined) return internal.methodOf(Class, "fetch");
  const object = isObject(exported) ? exported[entrypoint] : undefined;
  if (!hasHandlers(object)) return undefined;
  return (request, env, ctx) => ReflectApply(object.fetch, object, [request, env, ctx]);
};

// handlerClass returns the default export if it is a class whose instances answer events: one that extends
// WorkerEntrypoint, or whose prototype has one of the methods. Other functions are objects with handlers.
internal.handlerClass = (value, names) => {
  if (typeof value !== "function" || !isObject(value.prototype)) return undefined;
  if (extendsEntrypoint(value)) return value;
  for (let i = 0; i < names.length; i++) {
    if (typeof value.prototype[names[i]] === "function") return value;
  }
  return undefined;
};

// ---- cloudflare:workers ----

const operations = {
  waitUntil(promise) {
    requireArguments(arguments.length, 1, "waitUntil");
    const run = internal.acting();
    if (run === null || run === internal.background()) {
      throw new Error("waitUntil: no event runs; call it in a handler, or in what a handler calls");
    }
    internal.waitUntil(run, promise);
  },
};

// builtinExports lists each name that the module exports, and its value. deploy/bundle/builtin.go has the names too.
internal.builtinExports = () => [
  "RpcTarget", RpcTarget, "WorkerEntrypoint", WorkerEntrypoint, "env", internal.env(), "exports", ownExports(), "waitUntil",
  operations.waitUntil,
];
