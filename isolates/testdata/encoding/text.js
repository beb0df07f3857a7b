// TextEncoder and TextDecoder.

const bytes = (...list) => new Uint8Array(list);
const utf8 = (options) => new TextDecoder("utf-8", options);

test("encode", () => {
  const e = new TextEncoder();
  assert.equal(e.encoding, "utf-8");
  assert.deepEqual([...e.encode("aé€😀")], [97, 0xc3, 0xa9, 0xe2, 0x82, 0xac, 0xf0, 0x9f, 0x98, 0x80]);
  assert.deepEqual([...e.encode("\ud800x\udc00")], [0xef, 0xbf, 0xbd, 120, 0xef, 0xbf, 0xbd]);
  assert.deepEqual([...e.encode("\ud83d")], [0xef, 0xbf, 0xbd]);
  assert.deepEqual([...e.encode("\0")], [0]);
  assert.equal(e.encode().length, 0);
  assert.equal(e.encode(undefined).length, 0);
  assert.deepEqual([...e.encode(null)], [110, 117, 108, 108]);
  assert.throws(() => e.encode(Symbol()), TypeError);
  assert.equal(e.encode("x").constructor, Uint8Array);
  assert.throws(() => TextEncoder.prototype.encode.call({}), TypeError);
});

test("encodeInto", () => {
  const e = new TextEncoder();
  const cases = [["abc", 2, 2, 2], ["aé", 2, 1, 1], ["é", 1, 0, 0], ["😀", 3, 0, 0], ["😀", 4, 2, 4], ["a😀", 4, 1, 1], ["\ud800", 3, 1, 3],
    ["\ud800", 2, 0, 0], ["", 5, 0, 0], ["abc", 0, 0, 0]];
  for (const [text, size, read, written] of cases) {
    const r = e.encodeInto(text, new Uint8Array(size));
    assert.deepEqual([r.read, r.written], [read, written], JSON.stringify([text, size]));
  }
  const target = new Uint8Array(4).fill(9);
  e.encodeInto("hi", target.subarray(1, 3));
  assert.deepEqual([...target], [9, 104, 105, 9]);
  assert.deepEqual(Object.keys(e.encodeInto("", target)), ["read", "written"]);
  for (const bad of [new Uint8ClampedArray(1), new ArrayBuffer(1), new DataView(new ArrayBuffer(1)), [], null]) {
    assert.throws(() => e.encodeInto("", bad), TypeError);
  }
});

test("labels", () => {
  const cases = { "utf8": "utf-8", "UTF-8": "utf-8", " utf-8\t\n": "utf-8", "unicode-1-1-utf-8": "utf-8", "x-unicode20utf8": "utf-8",
    "latin1": "windows-1252", "ascii": "windows-1252", "iso-8859-1": "windows-1252", "US-ASCII": "windows-1252", "l1": "windows-1252",
    "utf-16": "utf-16le", "UTF-16LE": "utf-16le", "ucs-2": "utf-16le", "unicodefffe": "utf-16be", "utf-16be": "utf-16be" };
  for (const [label, name] of Object.entries(cases)) assert.equal(new TextDecoder(label).encoding, name, label);
  for (const bad of ["", "utf-7", "utf-8\0", "utf 8", "\u00a0utf-8", "utf‐8", "null", "K"]) assert.throws(() => new TextDecoder(bad), RangeError, bad);
  assert.throws(() => new TextDecoder(null), RangeError);
  assert.equal(new TextDecoder(undefined).encoding, "utf-8");
  const d = utf8({ fatal: 1, ignoreBOM: "x" });
  assert.deepEqual([d.fatal, d.ignoreBOM], [true, true]);
  assert.deepEqual([utf8().fatal, utf8(null).ignoreBOM], [false, false]);
  assert.throws(() => new TextDecoder("utf-8", 5), TypeError);
});

test("decode utf-8: malformed sequences become U+FFFD as the standard counts them", () => {
  const cases = [[[0xff], "\ufffd"], [[0xc0, 0x80], "\ufffd\ufffd"], [[0xc1, 0xbf], "\ufffd\ufffd"], [[0xe0, 0x80, 0x80], "\ufffd\ufffd\ufffd"],
    [[0xed, 0xa0, 0x80], "\ufffd\ufffd\ufffd"], [[0xf0, 0x80, 0x80, 0x80], "\ufffd\ufffd\ufffd\ufffd"], [[0xf5], "\ufffd"],
    [[0xf4, 0x90, 0x80, 0x80], "\ufffd\ufffd\ufffd\ufffd"], [[0xe2, 0x82], "\ufffd"], [[0xe2, 0x82, 0x41], "\ufffdA"], [[0xf0, 0x9f, 0x98], "\ufffd"],
    [[0xf0, 0x9f, 0x41], "\ufffdA"], [[0x80], "\ufffd"], [[0x41, 0x80, 0x42], "A\ufffdB"], [[0xc3], "\ufffd"], [[0xc3, 0xc3], "\ufffd\ufffd"],
    [[0xf0, 0x9f, 0x98, 0x80], "😀"], [[0xef, 0xbf, 0xbf], "\uffff"], [[0], "\0"]];
  for (const [input, expected] of cases) {
    assert.equal(utf8().decode(bytes(...input)), expected, input.join(" "));
    const valid = !expected.includes("\ufffd");
    if (valid) assert.equal(utf8({ fatal: true }).decode(bytes(...input)), expected);
    else assert.throws(() => utf8({ fatal: true }).decode(bytes(...input)), TypeError, input.join(" "));
  }
});

test("decode: inputs", () => {
  const buffer = bytes(97, 98, 99, 100).buffer;
  assert.equal(utf8().decode(buffer), "abcd");
  assert.equal(utf8().decode(new DataView(buffer, 1, 2)), "bc");
  assert.equal(utf8().decode(new Uint16Array(buffer, 2, 1)), "cd");
  assert.equal(utf8().decode(), "");
  assert.equal(utf8().decode(undefined), "");
  for (const bad of [null, "x", 5, [], {}]) assert.throws(() => utf8().decode(bad), TypeError);
  const detached = new ArrayBuffer(4);
  detached.transfer();
  assert.equal(utf8().decode(detached), "");
  assert.throws(() => TextDecoder.prototype.decode.call({}, bytes()), TypeError);
});

test("BOM", () => {
  const bom = bytes(0xef, 0xbb, 0xbf, 97);
  assert.equal(utf8().decode(bom), "a");
  assert.equal(utf8({ ignoreBOM: true }).decode(bom), "\ufeffa");
  assert.equal(utf8().decode(bytes(0xef, 0xbb, 0xbf, 0xef, 0xbb, 0xbf)), "\ufeff");
  assert.equal(utf8().decode(bytes(97, 0xef, 0xbb, 0xbf)), "a\ufeff");
  const d = utf8();
  assert.equal(d.decode(bytes(0xef), { stream: true }) + d.decode(bytes(0xbb), { stream: true }) + d.decode(bytes(0xbf, 97), { stream: true }) + d.decode(), "a");
  assert.equal(d.decode(bom), "a");
  assert.equal(d.decode(bom), "a");
  assert.equal(new TextDecoder("utf-16le").decode(bytes(0xff, 0xfe, 97, 0)), "a");
  assert.equal(new TextDecoder("utf-16be").decode(bytes(0xfe, 0xff, 0, 97)), "a");
  assert.equal(new TextDecoder("utf-16le").decode(bytes(0xfe, 0xff)), "\ufffe");
});

test("streaming utf-8: every split of every sequence", () => {
  const text = "a\u0000é€😀\u{10ffff}z";
  const all = new TextEncoder().encode(text);
  for (let i = 0; i <= all.length; i++) {
    for (let j = i; j <= all.length; j++) {
      const d = utf8({ fatal: true });
      const out = d.decode(all.subarray(0, i), { stream: true }) + d.decode(all.subarray(i, j), { stream: true }) + d.decode(all.subarray(j));
      if (out !== text) assert.equal(out, text, `${i} ${j}`);
    }
  }
  assert.ok(true);
});

test("streaming utf-8: malformed input over borders", () => {
  const cases = [[[[0xf0, 0x9f], [0x41]], "\ufffdA"], [[[0xe2], [0x82], []], "\ufffd"], [[[0xe0], [0x80]], "\ufffd\ufffd"], [[[0xc3], [0xc3], [0xa9]], "\ufffdé"],
    [[[0xf4], [0x90]], "\ufffd\ufffd"], [[[0xed], [0xa0]], "\ufffd\ufffd"]];
  for (const [parts, expected] of cases) {
    const d = utf8();
    let out = "";
    for (const part of parts) out += d.decode(bytes(...part), { stream: true });
    assert.equal(out + d.decode(), expected, JSON.stringify(parts));
  }
  const d = utf8({ fatal: true });
  d.decode(bytes(0xe2), { stream: true });
  assert.throws(() => d.decode(), TypeError);
  assert.equal(d.decode(bytes(97)), "a", "usable after a failure");
});

test("utf-16", () => {
  const le = (options) => new TextDecoder("utf-16le", options);
  assert.equal(le().decode(bytes(0x3d, 0xd8, 0x00, 0xde)), "😀");
  assert.equal(new TextDecoder("utf-16be").decode(bytes(0xd8, 0x3d, 0xde, 0x00)), "😀");
  assert.equal(le().decode(bytes(0x3d, 0xd8)), "\ufffd");
  assert.equal(le().decode(bytes(97)), "\ufffd");
  assert.equal(le().decode(bytes(97, 0, 98)), "a\ufffd");
  assert.equal(le().decode(bytes(0, 0xdc, 97, 0)), "\ufffda");
  assert.throws(() => le({ fatal: true }).decode(bytes(0x3d, 0xd8)), TypeError);
  assert.throws(() => le({ fatal: true }).decode(bytes(97)), TypeError);
  const d = le();
  let out = "";
  for (const b of [0x3d, 0xd8, 0x00, 0xde, 97]) out += d.decode(bytes(b), { stream: true });
  assert.equal(out + d.decode(bytes(0)), "😀a");
});

test("windows-1252", () => {
  assert.equal(new TextDecoder("latin1").decode(bytes(0x80, 0x81, 0x9f, 0xa0, 0xff, 0x41)), "€\u0081Ÿ\u00a0ÿA");
  const all = new TextDecoder("windows-1252", { fatal: true }).decode(Uint8Array.from({ length: 256 }, (_, i) => i));
  assert.equal(all.length, 256);
  const big = new TextDecoder("latin1").decode(new Uint8Array(20000).fill(65));
  assert.equal(big.length, 20000);
});
