// node/module.js is node:module, as far as there are modules: a bundle has been made of all.

"use strict";

const { Error, ObjectKeys } = primordials;
const { checks, coded, find, modules, put } = internal.node;

function notFound(name) {
  return coded(Error, "MODULE_NOT_FOUND", `Cannot find module '${name}': imports are bundled at deploy`);
}

function createRequire(path) {
  if (typeof path !== "string" && !internal.isURL(path)) throw internal.node.wrongType("filename", "a file URL object, file URL string, or absolute path string", path);
  const require = (name) => {
    checks.string(name, "id");
    const module = find(name);
    if (module === undefined) throw notFound(name);
    return module;
  };
  return put(require, {
    resolve(name) {
      if (find(name) === undefined) throw notFound(name);
      return name;
    },
    cache: {}, extensions: {}, main: undefined,
  });
}

function Module(id) { put(this, { id, exports: {}, loaded: false }); }
put(Module, {
  Module, createRequire,
  builtinModules: ObjectKeys(modules()),
  isBuiltin(name) {
    return typeof name === "string" && find(name) !== undefined;
  },
  syncBuiltinESMExports() {}, enableCompileCache() { return { status: 3 }; }, findSourceMap() { return undefined; }, register() {},
  wrap(code) { return `(function (exports, require, module, __filename, __dirname) { ${code}\n});`; },
  globalPaths: [], _cache: {}, _extensions: {}, _pathCache: {},
});
internal.nodeModules.module = Module;
