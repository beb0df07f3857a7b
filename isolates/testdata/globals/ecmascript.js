// What ECMAScript 2025, and the newer parts that V8 13.6 has, give is there although contexts come from a snapshot.

const paths = {
  2021: ["Promise.any", "AggregateError", "WeakRef", "FinalizationRegistry", "String.prototype.replaceAll"],
  2022: ["Array.prototype.at", "Object.hasOwn"],
  2023: ["Array.prototype.findLast", "Array.prototype.toSorted", "Array.prototype.toReversed", "Array.prototype.toSpliced", "Array.prototype.with", "Uint8Array.prototype.toSorted"],
  2024: ["Object.groupBy", "Map.groupBy", "Promise.withResolvers", "ArrayBuffer.prototype.transfer", "ArrayBuffer.prototype.transferToFixedLength", "ArrayBuffer.prototype.resize",
    "String.prototype.isWellFormed", "String.prototype.toWellFormed"],
  2025: ["Iterator", "Iterator.from", "Iterator.prototype.map", "Iterator.prototype.filter", "Iterator.prototype.take", "Iterator.prototype.drop", "Iterator.prototype.flatMap",
    "Iterator.prototype.reduce", "Iterator.prototype.toArray", "Iterator.prototype.forEach", "Iterator.prototype.some", "Iterator.prototype.every", "Iterator.prototype.find",
    "Set.prototype.union", "Set.prototype.intersection", "Set.prototype.difference", "Set.prototype.symmetricDifference", "Set.prototype.isSubsetOf", "Set.prototype.isSupersetOf",
    "Set.prototype.isDisjointFrom", "RegExp.escape", "Promise.try", "Float16Array", "Math.f16round", "DataView.prototype.getFloat16", "DataView.prototype.setFloat16"],
  2026: ["Array.fromAsync", "Error.isError", "JSON.rawJSON", "JSON.isRawJSON", "DisposableStack", "AsyncDisposableStack", "SuppressedError", "DisposableStack.prototype.adopt"],
  intl: ["Intl.Collator", "Intl.DateTimeFormat", "Intl.DisplayNames", "Intl.DurationFormat", "Intl.ListFormat", "Intl.Locale", "Intl.NumberFormat", "Intl.PluralRules", "Intl.RelativeTimeFormat",
    "Intl.Segmenter", "Intl.getCanonicalLocales", "Intl.supportedValuesOf", "Intl.NumberFormat.prototype.formatRange", "Intl.DateTimeFormat.prototype.formatRange",
    "Intl.PluralRules.prototype.selectRange", "Intl.Locale.prototype.getWeekInfo", "Intl.Locale.prototype.getTimeZones"],
};

for (const [year, list] of Object.entries(paths)) {
  test(`functions of ${year}`, () => {
    for (const path of list) {
      let value = globalThis;
      for (const key of path.split(".")) value = value?.[key];
      assert.equal(typeof value, "function", path);
    }
  });
}

test("symbols", () => {
  for (const name of ["asyncIterator", "hasInstance", "isConcatSpreadable", "iterator", "match", "matchAll", "replace", "search", "species", "split", "toPrimitive", "toStringTag", "unscopables", "dispose", "asyncDispose"]) {
    assert.equal(typeof Symbol[name], "symbol", name);
  }
  assert.equal(typeof Iterator.prototype[Symbol.dispose], "function");
});

test("syntax", async () => {
  assert.equal(/(?<y>\d{4})-|-(?<y>\d{4})/.exec("-2025").groups.y, "2025", "duplicate named groups");
  assert.ok(/^(?i:a)b$/.test("Ab"), "modifiers");
  assert.ok(/^[\p{L}--[a-z]]$/v.test("A"), "the v flag");
  assert.deepEqual(/(?<x>a)/d.exec("ba").indices.groups.x, [1, 2]);
  class C { static #n = 1; static { this.m = C.#n; } static has(o) { return #n in o; } }
  assert.deepEqual([C.m, C.has(C)], [1, true]);
  let x = null;
  x ??= 1_000;
  assert.equal(x, 1000);
  assert.equal(await Promise.try((a) => a, 5), 5);
});

test("they work", async () => {
  assert.deepEqual([...Iterator.from([1, 2, 3]).filter((n) => n > 1).map((n) => n * 2)], [4, 6]);
  assert.deepEqual([...new Set([1, 2]).union(new Set([3]))], [1, 2, 3]);
  assert.equal(new Float16Array([1.337])[0], Math.f16round(1.337));
  assert.equal(new RegExp(RegExp.escape("a.b")).test("axb"), false);
  assert.deepEqual(await Array.fromAsync([Promise.resolve(1)]), [1]);
  assert.equal(Error.isError(new TypeError()), true);
  assert.equal(JSON.stringify({ n: JSON.rawJSON("1e1000") }), '{"n":1e1000}');
  assert.equal(JSON.parse("[1.0]", (k, v, { source }) => (k === "0" ? source : v))[0], "1.0");
  const order = [];
  const stack = new DisposableStack();
  stack.defer(() => order.push(1));
  stack.use({ [Symbol.dispose]: () => order.push(2) });
  stack.dispose();
  assert.deepEqual(order, [2, 1]);
  assert.equal(new Intl.DurationFormat("en", { style: "short" }).format({ hours: 1 }), "1 hr");
  assert.equal(new Intl.NumberFormat("de").format(1234.5), "1.234,5");
  assert.equal([...new Intl.Segmenter("en", { granularity: "word" }).segment("a b")].length, 3);
  assert.equal(new Date(0).toLocaleDateString("de-DE", { timeZone: "Asia/Tokyo" }), "1.1.1970");
  assert.equal("\ud800".isWellFormed(), false);
});

test("the platform knows Float16Array", async () => {
  const f = new Float16Array([1.5, 2]);
  const copy = structuredClone(f);
  assert.ok(copy instanceof Float16Array && copy[0] === 1.5 && copy.length === 2);
  assert.throws(() => crypto.getRandomValues(new Float16Array(2)), "TypeMismatchError");
  assert.equal((await new Response(f).bytes()).length, 4);
  const stream = new ReadableStream({ type: "bytes", pull(c) { c.byobRequest.view[0] = 1; c.byobRequest.view[1] = 0x3c; c.byobRequest.respond(2); } });
  const { value } = await stream.getReader({ mode: "byob" }).read(new Float16Array(2));
  assert.ok(value instanceof Float16Array && value.length === 1);
  assert.equal((await new Blob([f]).arrayBuffer()).byteLength, 4);
});
