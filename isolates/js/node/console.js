// node/console.js is node:console: the global console, and the class Console over streams.

"use strict";

const { ObjectGetOwnPropertyDescriptor, ReflectGet, ReflectOwnKeys, globalThis } = primordials;
const { builtin, put, wrongType } = internal.node;

const levels = ["debug", "error", "info", "log", "trace", "warn"];

function Console(options, stderr) {
  if (!new.target) return new Console(options, stderr);
  const stdout = typeof options?.write === "function" ? options : options?.stdout;
  if (typeof stdout?.write !== "function") throw wrongType("stdout", "an instance of Stream", stdout);
  const errors = typeof options?.write === "function" ? stderr ?? stdout : options.stderr ?? stdout;
  let pad = "";
  const { format } = builtin("util");
  for (let i = 0; i < levels.length; i++) {
    const level = levels[i];
    const out = level === "error" || level === "warn" || level === "trace" ? errors : stdout;
    put(this, { [level](...args) { out.write(`${pad}${format(...args).split("\n").join(`\n${pad}`)}\n`); } });
  }
  const self = this;
  put(this, {
    group(...args) {
      if (args.length > 0) self.log(...args);
      pad += "  ";
    },
    groupEnd() { pad = pad.slice(2); },
    dir(value, settings) { stdout.write(`${builtin("util").inspect(value, settings)}\n`); },
    assert(value, ...args) { if (!value) self.warn("Assertion failed", ...args); },
  });
  return undefined;
}

const module = {};
const console = ReflectGet(globalThis, "console");
const keys = ReflectOwnKeys(console);
for (let i = 0; i < keys.length; i++) {
  if (typeof keys[i] !== "string") continue;
  const d = ObjectGetOwnPropertyDescriptor(console, keys[i]);
  put(module, { [keys[i]]: d.value });
}
put(module, { Console });
internal.nodeModules.console = module;
