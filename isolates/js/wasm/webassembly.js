// wasm/webassembly.js is WebAssembly. Most of it is V8's own. V8 would compile bytes on threads of its own and settle
// promises by tasks that nothing runs here. So these functions have Go check the bytes, and V8 compile them at once
// (docs/development/adr/0088).

"use strict";

const {
  ObjectDefineProperty, ReflectConstruct, ReflectDeleteProperty, StringPrototypeIndexOf, StringPrototypeSlice,
  StringPrototypeToLowerCase, StringPrototypeTrim, TypeError,
} = primordials;
const { ask, checkWasm, compileWasm, isWasmModule } = host;
const { askOps, bodyBuffer, contentTypeOf, isBodyUnusable, isObject, peekResponse, toSequence } = internal;
const native = primordials.WebAssembly;
const { Instance, Memory: NativeMemory, Tag: NativeTag, validate: validateNow } = native;

// instantiated is the result of instantiate for bytes.
const instantiated = (module, imports) => ({ module, instance: new Instance(module, imports) });

// moduleOf compiles the body of a Response, or of a promise of one.
async function moduleOf(source, what) {
  const response = await source;
  const state = peekResponse(response);
  if (state === undefined) throw new TypeError(`${what}: Argument 0 must be a Response or a Promise of one`);
  const type = contentTypeOf(state) ?? "";
  const end = StringPrototypeIndexOf(type, ";");
  const essence = StringPrototypeToLowerCase(StringPrototypeTrim(end === -1 ? type : StringPrototypeSlice(type, 0, end)));
  if (essence !== "application/wasm") throw new TypeError(`${what}: Incorrect response MIME type. Expected 'application/wasm'.`);
  if (state.status < 200 || state.status > 299) throw new TypeError(`${what}: HTTP status code is not ok`);
  if (isBodyUnusable(state)) throw new TypeError(`${what}: the body has been read already, or is locked by a reader`);
  return compileWasm(await bodyBuffer(state), what);
}

const functions = {
  async compile(bytes) {
    return compileWasm(bytes, "WebAssembly.compile()");
  },
  async compileStreaming(source) {
    return moduleOf(source, "WebAssembly.compileStreaming()");
  },
  async instantiate(bytes, imports = undefined) {
    if (isWasmModule(bytes)) return new Instance(bytes, imports);
    return instantiated(compileWasm(bytes, "WebAssembly.instantiate()"), imports);
  },
  async instantiateStreaming(source, imports = undefined) {
    return instantiated(await moduleOf(source, "WebAssembly.instantiateStreaming()"), imports);
  },
  validate(bytes) {
    return checkWasm(bytes, "WebAssembly.validate()", validateNow);
  },
};

// A tag has as many parameters as a function, and of these types.
const mostParameters = 100;
const tagTypes = {
  __proto__: null, i32: true, i64: true, f32: true, f64: true, v128: true, externref: true, anyfunc: true,
};

// Memory refuses what no limit covers: shared memory, and memory with addresses of 64 bits.
function Memory(descriptor) {
  if (new.target === undefined) throw new TypeError("WebAssembly.Memory(): WebAssembly.Memory must be invoked with 'new'");
  if (!isObject(descriptor)) throw new TypeError("WebAssembly.Memory(): Argument 0 must be a memory descriptor");
  const own = { __proto__: null };
  const { address, initial, maximum, shared } = descriptor;
  if (address !== undefined && `${address}` !== "i32") throw new TypeError("WebAssembly.Memory(): a worker has no memory with 64-bit addresses");
  if (shared) throw new TypeError("WebAssembly.Memory(): a worker has no shared memory");
  if (initial !== undefined) own.initial = initial;
  if (maximum !== undefined) own.maximum = maximum;
  return ReflectConstruct(NativeMemory, [own], new.target);
}
ObjectDefineProperty(Memory, "prototype", { __proto__: null, value: NativeMemory.prototype, writable: false });

// Tag has the host count the type of its parameters, which V8 keeps until the process ends.
function Tag(descriptor) {
  if (new.target === undefined) throw new TypeError("WebAssembly.Tag(): WebAssembly.Tag must be invoked with 'new'");
  if (!isObject(descriptor)) throw new TypeError("WebAssembly.Tag(): Argument 0 must be a tag type");
  const { parameters } = descriptor;
  if (!isObject(parameters)) throw new TypeError("WebAssembly.Tag(): Argument 0 must be a tag type with 'parameters'");
  const types = [];
  let n = 0, text = "";
  toSequence(parameters, (given) => {
    const type = `${given}`;
    if (n === mostParameters) throw new TypeError(`WebAssembly.Tag(): more than ${mostParameters} parameters`);
    if (!tagTypes[type]) throw new TypeError(`WebAssembly.Tag(): Argument 0 parameter type at index #${n} must be a value type`);
    ObjectDefineProperty(types, n, { __proto__: null, value: type, writable: true, enumerable: true, configurable: true });
    text += n++ === 0 ? type : `,${type}`;
  }, "WebAssembly.Tag(): parameters");
  ask(askOps.WASM_TAG, text);
  return ReflectConstruct(NativeTag, [{ __proto__: null, parameters: types }], new.target);
}
ObjectDefineProperty(Tag, "prototype", { __proto__: null, value: NativeTag.prototype, writable: false });

const define = (target, name, value, enumerable) =>
  ObjectDefineProperty(target, name, { __proto__: null, value, writable: true, enumerable, configurable: true });

const names = ["compile", "compileStreaming", "instantiate", "instantiateStreaming", "validate"];
for (let i = 0; i < names.length; i++) define(native, names[i], functions[names[i]], true);
define(native, "Memory", Memory, false);
define(Memory.prototype, "constructor", Memory, false);
define(native, "Tag", Tag, false);
define(Tag.prototype, "constructor", Tag, false);
// Suspending a stack of WebAssembly until a promise settles is not bounded by what ends a run.
const absent = ["Suspending", "SuspendError", "promising"];
for (let i = 0; i < absent.length; i++) ReflectDeleteProperty(native, absent[i]);

internal.provide("WebAssembly", native);

// wasmExports lists what pinwheel:wasm exports: a function that gives a module of the bundle by the hash of its bytes.
internal.wasmExports = () => [
  "imported", (hash) => compileWasm(ask(askOps.WASM_IMPORT, hash), "import of WebAssembly"),
];
