// node/process.js is the global process and node:process. A worker has no process of its own, so most of it says so.

"use strict";

const {
  BigInt, Error, MathFloor, ObjectCreate, ObjectDefineProperty, ReflectApply, ReflectOwnKeys, SymbolToStringTag, TypeError,
} = primordials;
const { builtin, checks, coded, hide, put, wrongType } = internal.node;

const EventEmitter = builtin("events");

// envOf makes process.env of the variables and secrets of env. Code may change it. Values become texts.
function envOf() {
  const out = { __proto__: null };
  const env = internal.env();
  const keys = ReflectOwnKeys(env);
  for (let i = 0; i < keys.length; i++) {
    const value = env[keys[i]];
    if (typeof value === "string") out[keys[i]] = value;
  }
  const json = internal.jsonVars();
  for (let i = 0; i + 1 < json.length; i += 2) out[json[i]] = json[i + 1];
  const target = ObjectCreate(primordials.ObjectPrototype);
  return new primordials.Proxy(target, {
    __proto__: null,
    get: (t, name) => (typeof name === "symbol" ? undefined : out[name] ?? t[name]),
    has: (_, name) => out[name] !== undefined,
    set(_, name, value) {
      if (typeof name === "symbol" || typeof value === "symbol") throw new TypeError("Cannot convert a Symbol value to a string");
      out[name] = `${value}`;
      return true;
    },
    defineProperty(_, name, d) {
      if (!("value" in d)) throw coded(TypeError, "ERR_INVALID_OBJECT_DEFINE_PROPERTY", "'process.env' does not accept an accessor(getter/setter) descriptor");
      out[name] = `${d.value}`;
      return true;
    },
    deleteProperty(_, name) {
      delete out[name];
      return true;
    },
    ownKeys: () => ReflectOwnKeys(out),
    getOwnPropertyDescriptor: (_, name) => (out[name] === undefined ? undefined
      : { value: out[name], writable: true, enumerable: true, configurable: true }),
  });
}

const started = host.now();

function hrtime(since) {
  const ms = host.now();
  let seconds = MathFloor(ms / 1000);
  let nanos = MathFloor((ms % 1000) * 1e6);
  if (since !== undefined) {
    checks.array(since, "time");
    seconds -= since[0];
    nanos -= since[1];
    if (nanos < 0) {
      seconds--;
      nanos += 1e9;
    }
  }
  return [seconds, nanos];
}
put(hrtime, { bigint() { return BigInt(MathFloor(host.now() * 1e6)); } });

function absent(name, why) {
  return coded(Error, "ERR_METHOD_NOT_IMPLEMENTED", `process.${name} is not there in a worker: ${why}`);
}

function memoryUsage() { return { rss: 0, heapTotal: 0, heapUsed: 0, external: 0, arrayBuffers: 0 }; }
put(memoryUsage, { rss() { return 0; } });

let directory = "/bundle";
let mask = 0o22;

// warn writes a warning to the log, and tells the listeners of process.
function warn(process, warning) {
  internal.queueMicrotask(() => {
    const detail = typeof warning.detail === "string" ? `\n${warning.detail}` : "";
    const code = warning.code === undefined ? "" : `[${warning.code}] `;
    internal.logLine(2, `${code}${warning.name}: ${warning.message}${detail}`);
    process.emit("warning", warning);
  });
}

const methods = {
  nextTick(callback, ...args) {
    checks.function(callback, "callback");
    internal.queueMicrotask(() => { ReflectApply(callback, undefined, args); });
  },
  emitWarning(warning, type, code) {
    let detail;
    if (type !== null && typeof type === "object") ({ code, detail, type } = type);
    if (typeof type === "function") type = code = undefined;
    if (typeof code === "function") code = undefined;
    if (type !== undefined) checks.string(type, "type");
    if (code !== undefined) checks.string(code, "code");
    if (typeof warning === "string") {
      const error = new Error(warning);
      hide(error, "name", type || "Warning");
      if (code !== undefined) error.code = code;
      if (detail !== undefined) error.detail = detail;
      warning = error;
    } else if (!internal.isError(warning)) throw wrongType("warning", "of type string or an instance of Error", warning);
    if (warning.name === "DeprecationWarning" && this.noDeprecation) return;
    warn(this, warning);
  },
  exit(code) {
    throw absent("exit", `the code has asked to exit with ${code ?? this.exitCode ?? 0}; a worker answers one event after the other: return, or throw`);
  },
  reallyExit(code) { return this.exit(code); },
  abort() { throw absent("abort", "throw an error instead"); },
  kill() { throw absent("kill", "there are no other processes"); },
  cwd() { return directory; },
  chdir(path) {
    checks.string(path, "directory");
    directory = builtin("path").resolve(directory, path);
  },
  umask(value) {
    const before = mask;
    if (value !== undefined) mask = +value & 0o777;
    return before;
  },
  uptime() { return (host.now() - started) / 1000; },
  cpuUsage() { return { user: 0, system: 0 }; },
  resourceUsage() { return { userCPUTime: 0, systemCPUTime: 0, maxRSS: 0 }; },
  availableMemory() { return 0; },
  constrainedMemory() { return 0; },
  getActiveResourcesInfo() { return []; },
  getBuiltinModule(name) {
    checks.string(name, "id");
    return internal.node.find(name);
  },
  getuid() { return 0; },
  geteuid() { return 0; },
  getgid() { return 0; },
  getegid() { return 0; },
  getgroups() { return []; },
  hasUncaughtExceptionCaptureCallback() { return false; },
  setUncaughtExceptionCaptureCallback() { throw absent("setUncaughtExceptionCaptureCallback", "use addEventListener(\"error\", …)"); },
  loadEnvFile() { throw absent("loadEnvFile", "a worker has no files; its variables are in process.env"); },
  setSourceMapsEnabled() {},
  ref() {},
  unref() {},
  hrtime, memoryUsage,
};

// stream makes stdout or stderr, whose lines go to the log.
function stream(fd) {
  const { Writable } = builtin("stream");
  let line = "";
  const out = new Writable({
    decodeStrings: false,
    write(chunk, _, done) {
      line += `${chunk}`;
      const end = primordials.StringPrototypeLastIndexOf(line, "\n");
      if (end !== -1) {
        internal.logLine(fd === 1 ? 1 : 3, primordials.StringPrototypeSlice(line, 0, end));
        line = primordials.StringPrototypeSlice(line, end + 1);
      }
      done();
    },
  });
  return put(out, { fd, isTTY: false });
}

const process = ObjectCreate(ObjectCreate(EventEmitter.prototype));
ReflectApply(EventEmitter, process, []);
put(process, {
  version: "v22.19.0", versions: put({}, { node: "22.19.0", v8: "13.6.233.10" }), title: "pinwheel", arch: "x64", platform: "linux",
  release: put({}, { name: "node", lts: true }), argv: ["pinwheel"], argv0: "pinwheel", execArgv: [], execPath: "", pid: 1, ppid: 0,
  exitCode: undefined, noDeprecation: false, throwDeprecation: false, traceDeprecation: false, connected: false,
  features: put({}, { inspector: false, debug: false, ipv6: true, tls: true, typescript: false, require_module: false }),
  config: put({}, { target_defaults: {}, variables: {} }), allowedNodeEnvironmentFlags: new primordials.Set(), domain: null,
});
put(process, methods);
internal.node.later(process, "env", envOf);
internal.node.later(process, "stdout", () => stream(1));
internal.node.later(process, "stderr", () => stream(2));
internal.node.later(process, "stdin", () => {
  const { Readable } = builtin("stream");
  return put(new Readable({ read() { this.push(null); } }), { fd: 0, isTTY: false });
});
ObjectDefineProperty(process, SymbolToStringTag,
  { __proto__: null, value: "process", writable: false, enumerable: false, configurable: true });

internal.provide("process", process);
internal.nodeModules.process = process;
