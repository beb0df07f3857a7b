// node:buffer in Cloudflare's workerd and in Pinwheel. Each list is of calls that have something in common. A case has
// the name of its list and its number in it.
import buffer, { Blob as ImportedBlob, Buffer as ImportedBuffer, File as ImportedFile, SlowBuffer, atob as importedAtob, btoa as importedBtoa, constants, isAscii, isUtf8, kMaxLength, kStringMaxLength, transcode } from "node:buffer";

const B = ImportedBuffer;

// show makes JSON of a result. Messages of errors are each runtime's own.
function show(v) {
  if (v instanceof Error) return { error: v.name, code: v.code };
  if (B.isBuffer(v)) return `<${v.length}> ${v.toString("hex")}`;
  if (v instanceof Uint8Array) return `bytes ${[...v]}`;
  if (typeof v === "bigint") return `${v}n`;
  if (typeof v === "number" && !Number.isFinite(v)) return String(v);
  if (Object.is(v, -0)) return "-0";
  if (v === undefined) return "undefined";
  if (typeof v === "function") return `function ${v.name}`;
  if (Array.isArray(v)) return v.map(show);
  return v;
}

async function attempt(f) {
  try {
    return show(await f());
  } catch (e) {
    return show(e);
  }
}

const abc = () => B.from("abcdefgh");
const texts = ["", "a", "ab", "abc", "äöü", "€uro", "😀", "a\ud83db", "\udc00", "\u0000\u007f\u0080\u00ff\u0100", "TWFu", "TWE=", "TQ==", "TQ", "-_-_", "+/+/", "T W\nF u", "T=Q=", "zz", "0a0B", "0a0", "0x0a", "68656c6c6f", "VGhpcyBpcyBhIHRlc3Q"];
const encodings = ["utf8", "utf-8", "UTF8", "ucs2", "ucs-2", "utf16le", "latin1", "binary", "ascii", "hex", "base64", "base64url", "HEX"];
const byteLists = [[], [0], [255], [0x61, 0x62, 0x63], [0xc3, 0xa4], [0xc3], [0xe2, 0x82], [0xf0, 0x9f, 0x98, 0x80], [0xf0, 0x9f, 0x98], [0xff, 0xfe, 0x41], [0xef, 0xbb, 0xbf, 0x41], [0x80, 0x81, 0xbf], [0xed, 0xa0, 0x80], [1, 2, 3, 4, 5]];
const wrong = [undefined, null, 1, true, {}, [], "x", Symbol.iterator, () => 1, 1n, new Date(0)];

const lists = {
  "from string": texts.flatMap((t) => encodings.map((e) => () => B.from(t, e))),
  "byteLength": texts.flatMap((t) => encodings.map((e) => () => B.byteLength(t, e))),
  "toString": byteLists.flatMap((l) => encodings.map((e) => () => B.from(l).toString(e))),
  "toString range": [() => abc().toString("utf8", 2), () => abc().toString("utf8", 2, 4), () => abc().toString("utf8", -2), () => abc().toString("utf8", 0, -2), () => abc().toString("utf8", 100), () => abc().toString("utf8", 2, 100), () => abc().toString("utf8", "2", "5"), () => abc().toString(undefined, 1, 3), () => abc().toString(null), () => abc().toString("no"), () => abc().toString(5), () => abc().toString("utf8", 4, 2), () => abc().toString("utf8", NaN, 2.7), () => String(abc()), () => `${abc()}`, () => abc() + ""],
  "from": [
    () => B.from([1, 2, 256, -1, 3.7, "5", "x"]), () => B.from(new Uint8Array([1, 2])), () => B.from(new Uint16Array([1, 258])), () => B.from(new Float32Array([1.5, 300])),
    () => B.from(new ArrayBuffer(4)), () => B.from(new ArrayBuffer(4), 1), () => B.from(new ArrayBuffer(4), 1, 2), () => B.from(new ArrayBuffer(4), 5), () => B.from(new ArrayBuffer(4), 1, 5), () => B.from(new ArrayBuffer(4), "1"), () => B.from(new ArrayBuffer(4), NaN, -1),
    () => B.from({ length: 2, 0: 7, 1: 8 }), () => B.from({ length: "2" }), () => B.from({ length: -1 }), () => B.from({ type: "Buffer", data: [1, 2] }), () => B.from({ valueOf: () => "abc" }), () => B.from({ [Symbol.toPrimitive]: () => "abc" }), () => B.from(new String("abc")), () => B.from(abc()), () => B.from(JSON.parse(JSON.stringify(abc()))),
    () => { const a = new ArrayBuffer(2); const b = B.from(a); new Uint8Array(a)[0] = 9; return b; }, () => { const a = B.from([1]); const b = B.from(a); a[0] = 9; return b; },
    () => B.from("abc", "no"), () => B.from("abc", 5), () => B.from("abc", null), () => B.from(new DataView(new ArrayBuffer(2))), () => B.of(1, 2, 300), () => B.from(new Set([1])), () => B.from({}),
    () => B("abc"), () => B(3), () => new B(3), () => new B("abc", "hex"), () => new B([1, 2]), () => new B(5, "x"), () => SlowBuffer(3), () => new SlowBuffer(2).length,
    () => B.copyBytesFrom(new Uint16Array([1, 2, 3])), () => B.copyBytesFrom(new Uint16Array([1, 2, 3]), 1), () => B.copyBytesFrom(new Uint16Array([1, 2, 3]), 1, 1), () => B.copyBytesFrom(new Uint16Array([1, 2, 3]), 5), () => B.copyBytesFrom(new Uint16Array([1, 2, 3]), -1), () => B.copyBytesFrom([1]), () => B.copyBytesFrom(new Uint8Array(0)), () => B.copyBytesFrom(new Uint8Array(3), 0, 100).length,
  ],
  "from wrong": wrong.map((w) => () => B.from(w)),
  "alloc": [() => B.alloc(3), () => B.alloc(0), () => B.alloc(3, 1), () => B.alloc(5, "ab"), () => B.alloc(5, "6162", "hex"), () => B.alloc(3, ""), () => B.alloc(3, "zz", "hex"), () => B.alloc(4, B.from([1, 2, 3])), () => B.alloc(3, 257), () => B.alloc(3, -1), () => B.alloc(3, "a", "no"), () => B.alloc(-1), () => B.alloc(NaN), () => B.alloc(1.5), () => B.alloc(2 ** 60), () => B.alloc("3"), () => B.alloc(3, null), () => B.alloc(3, true), () => B.alloc(3, new Uint8Array([1, 2])), () => B.allocUnsafe(3).length, () => B.allocUnsafeSlow(3).length, () => B.allocUnsafe(-1), () => B.allocUnsafe("a"), () => B.alloc(3, new Uint8Array(0))],
  "alloc wrong": wrong.map((w) => () => B.alloc(w)),
  "concat": [() => B.concat([B.from("a"), B.from("b")]), () => B.concat([]), () => B.concat([B.from("abc")], 2), () => B.concat([B.from("abc")], 5), () => B.concat([B.from("abc")], -1), () => B.concat([B.from("abc")], 1.5), () => B.concat(["a"]), () => B.concat("a"), () => B.concat(), () => B.concat([new Uint8Array([1]), B.from([2])]), () => B.concat([B.from("abc"), B.from("def")], 4), () => B.concat([B.from("abc")], "2"), () => B.concat([new Uint16Array([1])])],
  "compare": [() => B.compare(B.from("a"), B.from("b")), () => B.compare(B.from("b"), B.from("a")), () => B.compare(B.from("a"), B.from("a")), () => B.compare(B.from("a"), B.from("ab")), () => B.compare("a", B.from("a")), () => B.compare(B.from("a"), "a"), () => abc().compare(B.from("abc")), () => abc().compare(B.from("cde"), 0, 2, 2, 4), () => abc().compare(B.from("cde"), 5), () => abc().compare(B.from("cde"), 0, 5), () => abc().compare(B.from("x"), 0, 0, 0, 0), () => abc().compare("x"), () => abc().compare(B.from("abc"), 0, 3, 0, 3), () => abc().compare(B.from("abc"), -1), () => abc().compare(B.from("abc"), 0, 3, 100), () => abc().compare(B.from("abc"), "0"), () => abc().equals(abc()), () => abc().equals(B.from("x")), () => abc().equals("abcdefgh"), () => abc().equals(new Uint8Array(abc()))],
  "indexOf": ["c", "cd", "", "x", B.from("de"), B.from(""), new Uint8Array([0x63]), 0x63, 0x163, 99.9, -157, "63", 300].flatMap((v) => [undefined, 0, 3, -3, -100, 100, NaN, "3", null, {}, Infinity].map((o) => () => abc().indexOf(v, o))),
  "lastIndexOf": ["c", "cd", "", "x", B.from("de"), new Uint8Array([0x63]), 0x63].flatMap((v) => [undefined, 0, 3, -3, -100, 100, NaN, null, Infinity].map((o) => () => abc().lastIndexOf(v, o))),
  "search": [() => abc().includes("cd"), () => abc().includes("cd", 3), () => abc().includes(0x61), () => abc().includes(""), () => abc().indexOf("6364", "hex"), () => abc().indexOf("6364", 0, "hex"), () => abc().indexOf("Y2Q=", "base64"), () => abc().indexOf("c", "no"), () => abc().indexOf(), () => abc().indexOf({}), () => abc().indexOf(null), () => B.from("a\u0000b\u0000c\u0000", "latin1").indexOf("b", 0, "ucs2"), () => B.from("aaaaab").indexOf("aab"), () => B.from("aaaaab").lastIndexOf("aa"), () => B.from("abcabc").lastIndexOf("abc", 2), () => B.from("abcabc").lastIndexOf("abc", 3), () => B.from("").indexOf("a"), () => B.from("").indexOf(""), () => B.from("").lastIndexOf(""), () => abc().indexOf([]), () => abc().includes(undefined)],
  "fill": [() => abc().fill("x"), () => abc().fill("xy"), () => abc().fill("xy", 2), () => abc().fill("xy", 2, 5), () => abc().fill(0), () => abc().fill(65.9, 1, 3), () => abc().fill("6162", "hex"), () => abc().fill("6162", 1, "hex"), () => abc().fill("6162", 1, 4, "hex"), () => abc().fill("zz", "hex"), () => abc().fill(""), () => abc().fill("x", -1), () => abc().fill("x", 0, 100), () => abc().fill("x", 5, 2), () => abc().fill("x", "no"), () => abc().fill("ä"), () => abc().fill(B.from([1, 2, 3])), () => abc().fill(new Uint8Array([1])), () => abc().fill("x", 1.5), () => abc().fill(true), () => abc().fill(null), () => abc().fill(undefined), () => abc().fill({}), () => abc().fill(B.alloc(0)), () => abc().fill("x", "1"), () => abc().fill("€", 0, 4)],
  "write": [() => { const b = B.alloc(5); return [b.write("abc"), b]; }, () => { const b = B.alloc(5); return [b.write("abc", 3), b]; }, () => { const b = B.alloc(5); return [b.write("abcdef", 1, 2), b]; }, () => { const b = B.alloc(5); return [b.write("6162", "hex"), b]; }, () => { const b = B.alloc(5); return [b.write("6162", 1, "hex"), b]; }, () => { const b = B.alloc(5); return [b.write("6162", 1, 1, "hex"), b]; }, () => { const b = B.alloc(3); return [b.write("a€"), b]; }, () => { const b = B.alloc(3); return [b.write("ab", "utf16le"), b]; }, () => { const b = B.alloc(3); return [b.write("äöü", "latin1"), b]; }, () => B.alloc(3).write(5), () => B.alloc(3).write("a", 5), () => B.alloc(3).write("a", -1), () => B.alloc(3).write("a", 0, 5), () => B.alloc(3).write("a", 0, 1, "no"), () => B.alloc(3).write("a", 1.5), () => B.alloc(3).write(), () => B.alloc(0).write("a"), () => B.alloc(3).write("a", 3), () => B.alloc(3).write("a", undefined, "hex")],
  "copy": [() => { const t = B.alloc(5); return [abc().copy(t), t]; }, () => { const t = B.alloc(5); return [abc().copy(t, 2), t]; }, () => { const t = B.alloc(5); return [abc().copy(t, 1, 2, 4), t]; }, () => { const t = new Uint8Array(3); return [abc().copy(t), t]; }, () => { const t = B.from("abcdef"); return [t.copy(t, 2, 0, 4), t]; }, () => abc().copy(B.alloc(5), 6), () => abc().copy(B.alloc(5), -1), () => abc().copy(B.alloc(5), 0, 9), () => abc().copy(B.alloc(5), 0, -1), () => abc().copy(B.alloc(5), 0, 4, 2), () => abc().copy("x"), () => abc().copy(B.alloc(5), 0, 0, 100), () => abc().copy(B.alloc(5), "1"), () => abc().copy(), () => abc().copy(B.alloc(5), 0, 0, -1)],
  "slice": [undefined, 0, 2, -2, 100, "3", NaN, 1.7].flatMap((a) => [undefined, 5, -1, 100, 0].map((b) => () => [abc().slice(a, b), abc().subarray(a, b)])),
  "shares": [() => { const a = abc(); a.slice(1)[0] = 0x7a; return a; }, () => { const a = abc(); return a.subarray(2).buffer === a.buffer; }, () => abc().slice(1) instanceof B, () => abc().map((x) => x + 1), () => abc().filter((x) => x > 99), () => abc().map((x) => x) instanceof B, () => abc().constructor.name, () => [...abc().entries()].length, () => [...abc().keys()].length, () => abc().at(-1), () => abc().toSorted().constructor.name, () => abc().reverse(), () => new Uint8Array(abc()).length, () => abc().parent instanceof ArrayBuffer, () => typeof abc().offset, () => Object.prototype.toString.call(abc()), () => JSON.stringify(abc()), () => abc().toJSON().data.length, () => abc().set([1, 2], 3), () => structuredClone(abc()).constructor.name, () => abc().join("-"), () => Object.keys(B.from([5, 6])), () => B.name + B.length, () => typeof B[Symbol.species]],
  "swap": [() => abc().swap16(), () => abc().swap32(), () => abc().swap64(), () => B.from("abc").swap16(), () => B.from("abc").swap32(), () => B.from("abc").swap64(), () => B.alloc(0).swap16()],
  "read": ["UInt8", "Int8", "UInt16LE", "UInt16BE", "Int16LE", "Int16BE", "UInt32LE", "UInt32BE", "Int32LE", "Int32BE", "BigUInt64LE", "BigUInt64BE", "BigInt64LE", "BigInt64BE", "FloatLE", "FloatBE", "DoubleLE", "DoubleBE", "Uint8", "Uint16LE", "BigUint64BE"].flatMap((n) => [undefined, 0, 1, 9, -1, 1.5, "1", null, NaN].map((o) => () => B.from([0x81, 0x92, 0xa3, 0xb4, 0xc5, 0xd6, 0xe7, 0xf8, 0x09])[`read${n}`](o))),
  "read bytes": ["UIntLE", "UIntBE", "IntLE", "IntBE"].flatMap((n) => [[0, 1], [0, 2], [1, 3], [0, 4], [0, 5], [1, 6], [0, 7], [0, 0], [4, 6], [0], [undefined, 2], ["0", 2], [0, "2"], [0, 1.5]].map((a) => () => B.from([0x81, 0x92, 0xa3, 0xb4, 0xc5, 0xd6, 0xe7, 0xf8])[`read${n}`](...a))),
  "write numbers": [["UInt8", 255], ["UInt8", 256], ["UInt8", -1], ["Int8", -128], ["Int8", 128], ["UInt16LE", 0x1234], ["UInt16BE", 0x1234], ["UInt16LE", 70000], ["Int16LE", -2], ["Int16BE", -32769], ["UInt32LE", 0x12345678], ["UInt32BE", 2 ** 32], ["Int32LE", -5], ["Int32BE", 2 ** 31], ["BigUInt64LE", 5n], ["BigUInt64BE", 2n ** 64n], ["BigInt64LE", -5n], ["BigInt64BE", -(2n ** 63n) - 1n], ["BigInt64LE", 5], ["FloatLE", 1.5], ["FloatBE", 1e60], ["DoubleLE", -0], ["DoubleBE", NaN], ["UInt8", "5"], ["UInt8", NaN], ["UInt8", "x"], ["UInt16LE", 1.7], ["UInt8", undefined], ["FloatLE", "1.5"], ["BigInt64LE", "5"], ["Uint32LE", 7]].flatMap(([n, v]) => [undefined, 1, 9, -1, "0"].map((o) => () => { const b = B.alloc(9); return [b[`write${n}`](v, o), b]; })),
  "write bytes": [["UIntLE", 0x123456, 0, 3], ["UIntBE", 0x123456, 1, 3], ["IntLE", -2, 0, 5], ["IntBE", -2, 0, 6], ["UIntLE", 256, 0, 1], ["UIntBE", 1, 0, 7], ["IntLE", 2 ** 47, 0, 6], ["UIntLE", 1, 7, 3], ["UIntLE", 1, 0], ["UIntLE", 1, undefined, 2], ["IntBE", -(2 ** 23) - 1, 0, 3], ["UIntBE", 2 ** 40, 0, 5], ["UIntLE", -1, 0, 4]].map(([n, ...a]) => () => { const b = B.alloc(8); return [b[`write${n}`](...a), b]; }),
  "statics": [() => B.isBuffer(abc()), () => B.isBuffer(new Uint8Array(1)), () => B.isBuffer("x"), () => B.isEncoding("utf8"), () => B.isEncoding("UTF-8"), () => B.isEncoding("no"), () => B.isEncoding(""), () => B.isEncoding(5), () => B.isEncoding("Hex"), () => B.byteLength(abc()), () => B.byteLength(new ArrayBuffer(5)), () => B.byteLength(new DataView(new ArrayBuffer(5), 1)), () => B.byteLength(5), () => B.byteLength(), () => B.byteLength("abc", "no"), () => B.byteLength({}), () => B.poolSize, () => typeof kMaxLength, () => kStringMaxLength, () => constants.MAX_STRING_LENGTH === kStringMaxLength],
  "functions": [() => isUtf8(B.from([0xc3])), () => isUtf8(B.from("ä")), () => isUtf8(new Uint16Array(2)), () => isUtf8("x"), () => isAscii(B.from("a")), () => isAscii(B.from("ä")), () => isAscii(new ArrayBuffer(3)), () => isAscii(5), () => importedAtob("YQ=="), () => importedBtoa("a"), () => importedBtoa("€"), () => transcode(B.from("€"), "utf8", "latin1"), () => transcode(B.from("€"), "utf8", "utf16le"), () => transcode(B.from("äb"), "utf8", "ascii"), () => transcode(B.from("a"), "hex", "utf8"), () => transcode("a", "utf8", "ascii"), () => transcode(B.from("a\u0000", "latin1"), "ucs2", "utf8"), () => transcode(B.from([0xe4]), "latin1", "utf8"), () => ImportedBlob === Blob, () => ImportedFile === File, () => buffer.Buffer === B, () => Buffer === B, () => globalThis.Buffer === B, () => "Buffer" in globalThis, () => Object.getOwnPropertyDescriptor(globalThis, "Buffer").enumerable, () => global === globalThis],
  "slices": [() => abc().utf8Slice(1, 3), () => abc().hexSlice(), () => abc().base64Slice(0, 3), () => abc().latin1Slice(2), () => abc().asciiSlice(0, 2), () => abc().ucs2Slice(0, 4), () => { const b = B.alloc(4); return [b.utf8Write("ab", 1), b]; }, () => { const b = B.alloc(4); return [b.hexWrite("6162", 1), b]; }, () => { const b = B.alloc(4); return [b.latin1Write("ä"), b]; }],
};

const known = Object.keys(buffer).sort();

export default {
  async fetch() {
    const all = { "exports": known };
    for (const [name, calls] of Object.entries(lists)) {
      for (let i = 0; i < calls.length; i++) all[`${name} ${i}`] = await attempt(calls[i]);
    }
    return Response.json(all);
  },
};
