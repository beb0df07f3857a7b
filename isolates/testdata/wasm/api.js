// The JavaScript interface of WebAssembly.

// sum(a, b), with a memory, a table, a global and a tag that are exported.
const section = (id, ...contents) => [id, contents.length, ...contents];
const text = (s) => [s.length, ...new TextEncoder().encode(s)];
const bytes = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0,
  ...section(1, 2, 96, 2, 127, 127, 1, 127, 96, 0, 0), // types: (i32, i32) -> i32, () -> ()
  ...section(3, 2, 0, 1), // two functions
  ...section(4, 1, 112, 0, 2), // a table of two entries
  ...section(5, 1, 1, 1, 2), // a memory of a page, at most two
  ...section(13, 1, 0, 1), // a tag
  ...section(6, 1, 127, 1, 65, 7, 11), // a global that changes
  ...section(7, 6, ...text("sum"), 0, 0, ...text("trap"), 0, 1, ...text("mem"), 2, 0, ...text("table"), 1, 0, ...text("g"), 3, 0, ...text("tag"), 4, 0),
  ...section(10, 2, 7, 0, 32, 0, 32, 1, 106, 11, 3, 0, 0, 11), // sum, trap
  ...section(0, ...text("note"), 1, 2)]);
const importing = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 2, 7, 1, 1, 101, 1, 102, 0, 0, 8, 1, 0]); // e.f, which starts

const message = (f) => { try { f(); } catch (e) { return `${e.constructor.name}: ${e.message}`; } return "none"; };
const rejected = async (p) => { try { await p; } catch (e) { return `${e.constructor.name}: ${e.message}`; } return "none"; };

test("names", () => {
  assert.equal(Object.prototype.toString.call(WebAssembly), "[object WebAssembly]");
  const { writable, enumerable, configurable } = Object.getOwnPropertyDescriptor(globalThis, "WebAssembly");
  assert.equal(`${writable} ${enumerable} ${configurable}`, "true false true");
  for (const [name, length] of [["compile", 1], ["instantiate", 1], ["validate", 1], ["compileStreaming", 1], ["instantiateStreaming", 1]]) {
    const d = Object.getOwnPropertyDescriptor(WebAssembly, name);
    assert.equal(`${d.value.name} ${d.value.length} ${d.enumerable} ${d.writable} ${d.configurable}`, `${name} ${length} true true true`);
    assert.equal(message(() => new d.value()), `TypeError: d.value is not a constructor`);
  }
  for (const name of ["Module", "Instance", "Memory", "Table", "Global", "Tag", "Exception", "CompileError", "LinkError", "RuntimeError"]) {
    const d = Object.getOwnPropertyDescriptor(WebAssembly, name);
    assert.equal(`${d.value.name} ${d.value.length} ${d.enumerable}`, `${name} 1 false`);
    assert.equal(d.value.prototype.constructor, d.value);
  }
  for (const name of ["promising", "Suspending"]) assert.equal(name in WebAssembly, false);
});

test("a module and an instance", () => {
  const module = new WebAssembly.Module(bytes);
  assert.equal(module instanceof WebAssembly.Module, true);
  assert.equal(Object.getPrototypeOf(module), WebAssembly.Module.prototype);
  assert.equal(JSON.stringify(WebAssembly.Module.exports(module)), JSON.stringify([{ name: "sum", kind: "function" }, { name: "trap", kind: "function" },
    { name: "mem", kind: "memory" }, { name: "table", kind: "table" }, { name: "g", kind: "global" }, { name: "tag", kind: "tag" }]));
  assert.equal(JSON.stringify(WebAssembly.Module.imports(new WebAssembly.Module(importing))), '[{"module":"e","name":"f","kind":"function"}]');
  assert.equal(new Uint8Array(WebAssembly.Module.customSections(module, "note")[0]).join(), "1,2");
  const { exports } = new WebAssembly.Instance(module);
  assert.equal(exports.sum(40, 2), 42);
  assert.equal(exports.sum(2 ** 31, 2 ** 31), 0);
  assert.equal(Object.isFrozen(exports), true);
  assert.equal(exports.mem instanceof WebAssembly.Memory, true);
  assert.equal(exports.mem.constructor, WebAssembly.Memory);
  assert.equal(exports.table instanceof WebAssembly.Table, true);
  assert.equal(exports.table.get(0), null);
  exports.table.set(0, exports.sum);
  assert.equal(exports.table.get(0)(1, 2), 3);
  assert.equal(exports.g.value, 7);
  assert.equal((exports.g.value = 9, exports.g.value), 9);
  assert.equal(exports.tag instanceof WebAssembly.Tag, true);
  const error = message(() => exports.trap());
  assert.equal(error, "RuntimeError: unreachable");
  let stack;
  try { exports.trap(); } catch (e) { stack = e.stack; }
  assert.equal(/wasm:\/\/wasm\/[0-9a-f]+:wasm-function\[1\]:0x/.test(stack), true, stack);
});

test("bytes of every kind", () => {
  const buffer = new ArrayBuffer(bytes.length + 3);
  new Uint8Array(buffer, 3).set(bytes);
  for (const source of [bytes, bytes.buffer, new DataView(buffer, 3), new Uint8Array(buffer, 3), new Uint8ClampedArray(bytes)]) {
    assert.equal(new WebAssembly.Instance(new WebAssembly.Module(source)).exports.sum(1, 2), 3);
    assert.equal(WebAssembly.validate(source), true);
  }
});

test("what is refused", async () => {
  assert.equal(message(() => WebAssembly.Module(bytes)), "TypeError: WebAssembly.Module(): WebAssembly.Module must be invoked with 'new'");
  assert.equal(message(() => new WebAssembly.Module()), "TypeError: WebAssembly.Module(): Argument 0 must be a buffer source");
  assert.equal(message(() => new WebAssembly.Module("text")), "TypeError: WebAssembly.Module(): Argument 0 must be a buffer source");
  assert.equal(message(() => new WebAssembly.Module(new Uint8Array())), "CompileError: WebAssembly.Module(): BufferSource argument is empty");
  assert.equal(/^CompileError: WebAssembly.Module\(\): .+ @\+0$/.test(message(() => new WebAssembly.Module(new Uint8Array(8)))), true);
  assert.equal(/^CompileError: WebAssembly.compile\(\): /.test(await rejected(WebAssembly.compile(new Uint8Array(8)))), true);
  assert.equal(/^CompileError: WebAssembly.instantiate\(\): /.test(await rejected(WebAssembly.instantiate(new Uint8Array(8)))), true);
  assert.equal(await rejected(WebAssembly.compile()), "TypeError: WebAssembly.compile(): Argument 0 must be a buffer source");
  assert.equal(WebAssembly.validate(new Uint8Array(8)), false);
  assert.equal(WebAssembly.validate(new Uint8Array()), false);
  assert.equal(WebAssembly.validate(new ArrayBuffer((16 << 20) + 1)), false);
  assert.equal(WebAssembly.validate(bytes) && WebAssembly.validate(bytes), true);
  assert.equal(message(() => WebAssembly.validate()), "TypeError: WebAssembly.validate(): Argument 0 must be a buffer source");
  // What V8 alone sees: a function that leaves nothing on the stack, where a number should be.
  const untyped = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 127, 3, 2, 1, 0, 10, 4, 1, 2, 0, 11]);
  assert.equal(WebAssembly.validate(untyped) || WebAssembly.validate(untyped), false);
  const why = message(() => new WebAssembly.Module(untyped));
  assert.equal(why.startsWith("CompileError: "), true, why);
  const tail = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 3, 2, 1, 0, 10, 6, 1, 4, 0, 18, 0, 11]);
  assert.equal(WebAssembly.validate(tail), false);
  assert.equal(/^CompileError: /.test(message(() => new WebAssembly.Module(tail))), true);
  assert.equal(message(() => new WebAssembly.Memory({ initial: 1, maximum: 2, shared: true })), "TypeError: WebAssembly.Memory(): a worker has no shared memory");
  assert.equal(message(() => new WebAssembly.Memory({ initial: 1n, address: "i64" })), "TypeError: WebAssembly.Memory(): a worker has no memory with 64-bit addresses");
  assert.equal(message(() => WebAssembly.Memory({ initial: 1 })), "TypeError: WebAssembly.Memory(): WebAssembly.Memory must be invoked with 'new'");
  assert.equal(message(() => new WebAssembly.Memory()), "TypeError: WebAssembly.Memory(): Argument 0 must be a memory descriptor");
  assert.equal(message(() => new WebAssembly.Memory({})).startsWith("TypeError: WebAssembly.Memory(): Property 'initial'"), true, message(() => new WebAssembly.Memory({})));
  assert.equal(message(() => new WebAssembly.Table({ element: "anyfunc", initial: 1000001 })).startsWith("RangeError: WebAssembly.Table(): Property 'initial'"), true, message(() => new WebAssembly.Table({ element: "anyfunc", initial: 1000001 })));
  assert.equal(message(() => new WebAssembly.Instance(new WebAssembly.Module(importing))).startsWith("TypeError: WebAssembly.Instance(): Imports argument must be present"), true, message(() => new WebAssembly.Instance(new WebAssembly.Module(importing))));
  assert.equal(message(() => new WebAssembly.Instance(new WebAssembly.Module(importing), { e: { f: 1 } })).startsWith("LinkError: WebAssembly.Instance(): Import #0"), true, message(() => new WebAssembly.Instance(new WebAssembly.Module(importing), { e: { f: 1 } })));
  assert.equal(message(() => new Function("return 1")).startsWith("EvalError"), true);
});

test("promises settle", async () => {
  const module = await WebAssembly.compile(bytes);
  assert.equal(module instanceof WebAssembly.Module, true);
  const both = await WebAssembly.instantiate(bytes, {});
  assert.equal(Object.keys(both).join(), "module,instance");
  assert.equal(both.instance.exports.sum(3, 4), 7);
  const one = await WebAssembly.instantiate(module);
  assert.equal(one instanceof WebAssembly.Instance, true);
  assert.equal(await rejected(WebAssembly.instantiate(new WebAssembly.Module(importing), { e: {} })),
    'LinkError: WebAssembly.Instance(): Import #0 "e" "f": function import requires a callable');
  let started = 0;
  await WebAssembly.instantiate(importing, { e: { f() { started++; } } });
  assert.equal(started, 1);
  assert.equal(await rejected(WebAssembly.instantiate(importing, { e: { f() { throw new RangeError("mine"); } } })), "RangeError: mine");
});

test("a Response", async () => {
  const response = (type = "application/wasm", init = {}) => new Response(bytes, { headers: { "content-type": type }, ...init });
  assert.equal((await WebAssembly.compileStreaming(response())) instanceof WebAssembly.Module, true);
  assert.equal((await WebAssembly.instantiateStreaming(Promise.resolve(response("Application/wasm ; a=b")), {})).instance.exports.sum(1, 1), 2);
  assert.equal(await rejected(WebAssembly.compileStreaming(response("text/plain"))),
    "TypeError: WebAssembly.compileStreaming(): Incorrect response MIME type. Expected 'application/wasm'.");
  assert.equal((await rejected(WebAssembly.compileStreaming(response(undefined, { status: 404 })))).startsWith("TypeError"), true);
  assert.equal((await rejected(WebAssembly.compileStreaming(bytes))).startsWith("TypeError"), true);
  assert.equal(await rejected(WebAssembly.compileStreaming(Promise.reject(new RangeError("mine")))), "RangeError: mine");
  const used = response();
  await used.text();
  assert.equal((await rejected(WebAssembly.compileStreaming(used))).startsWith("TypeError"), true);
});

test("memory", () => {
  const memory = new WebAssembly.Memory({ initial: 1, maximum: 3 });
  assert.equal(Object.prototype.toString.call(memory), "[object WebAssembly.Memory]");
  const { buffer } = memory;
  assert.equal(buffer.byteLength, 65536);
  assert.equal(memory.grow(2), 1);
  assert.equal(buffer.byteLength, 0);
  assert.equal(memory.buffer.byteLength, 3 * 65536);
  assert.equal(message(() => memory.grow(1)).startsWith("RangeError"), true);
  assert.equal(message(() => memory.buffer.transfer()).startsWith("TypeError"), true);
  assert.equal(message(() => structuredClone(memory.buffer, { transfer: [memory.buffer] })) !== "none", true);
  assert.equal(memory.buffer.byteLength, 3 * 65536);
  class Mine extends WebAssembly.Memory {}
  const mine = new Mine({ initial: 1 });
  assert.equal(mine instanceof Mine && mine.buffer.byteLength === 65536, true);
});

test("tags", () => {
  const tag = new WebAssembly.Tag({ parameters: ["i32", "externref"] });
  assert.equal(tag instanceof WebAssembly.Tag, true);
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(bytes));
  assert.equal(exports.tag.constructor, WebAssembly.Tag);
  const e = new WebAssembly.Exception(tag, [7, "x"]);
  assert.equal(e.is(tag) && e.getArg(tag, 0) === 7 && e.getArg(tag, 1) === "x", true);
  assert.equal(message(() => new WebAssembly.Tag({ parameters: Array(101).fill("i32") })), "TypeError: WebAssembly.Tag(): more than 100 parameters");
  assert.equal(message(() => new WebAssembly.Tag({ parameters: ["i33"] })),
    "TypeError: WebAssembly.Tag(): Argument 0 parameter type at index #0 must be a value type");
  assert.equal(message(() => WebAssembly.Tag({ parameters: [] })).startsWith("TypeError"), true);
  assert.equal(message(() => new WebAssembly.Tag({})).startsWith("TypeError"), true);
});

test("a module cannot be cloned", () => {
  const module = new WebAssembly.Module(bytes);
  let name;
  try { structuredClone({ module }); } catch (e) { name = `${e.name}: ${e.message}`; }
  assert.equal(name, "DataCloneError: a WebAssembly.Module could not be cloned");
});

test("a replaced prototype changes nothing", async () => {
  const { then } = Promise.prototype;
  const { Module } = WebAssembly;
  try {
    WebAssembly.Module = null;
    assert.equal((await WebAssembly.compile(bytes)) instanceof Module, true);
  } finally {
    WebAssembly.Module = Module;
    Promise.prototype.then = then;
  }
});
