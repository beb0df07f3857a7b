// TextDecoder of the legacy encodings, and the streams of text.

const bytes = (...list) => new Uint8Array(list);
const un = (text) => new Uint8Array((text.replace(/\s/g, "").match(/../g) ?? []).map((x) => parseInt(x, 16)));
const points = (text) => [...text].map((c) => c.codePointAt(0).toString(16)).join(" ");

test("every label of the standard", () => {
  const labels = {
    "utf-8": ["unicode-1-1-utf-8", "unicode11utf8", "unicode20utf8", "utf-8", "utf8", "x-unicode20utf8"],
    "ibm866": ["866", "cp866", "csibm866", "ibm866"],
    "iso-8859-2": ["csisolatin2", "iso-8859-2", "iso-ir-101", "iso8859-2", "iso88592", "iso_8859-2", "iso_8859-2:1987", "l2", "latin2"],
    "iso-8859-3": ["csisolatin3", "iso-8859-3", "iso-ir-109", "iso8859-3", "iso88593", "iso_8859-3", "iso_8859-3:1988", "l3", "latin3"],
    "iso-8859-4": ["csisolatin4", "iso-8859-4", "iso-ir-110", "iso8859-4", "iso88594", "iso_8859-4", "iso_8859-4:1988", "l4", "latin4"],
    "iso-8859-5": ["csisolatincyrillic", "cyrillic", "iso-8859-5", "iso-ir-144", "iso8859-5", "iso88595", "iso_8859-5", "iso_8859-5:1988"],
    "iso-8859-6": ["arabic", "asmo-708", "csiso88596e", "csiso88596i", "csisolatinarabic", "ecma-114", "iso-8859-6", "iso-8859-6-e", "iso-8859-6-i", "iso-ir-127", "iso8859-6", "iso88596", "iso_8859-6", "iso_8859-6:1987"],
    "iso-8859-7": ["csisolatingreek", "ecma-118", "elot_928", "greek", "greek8", "iso-8859-7", "iso-ir-126", "iso8859-7", "iso88597", "iso_8859-7", "iso_8859-7:1987", "sun_eu_greek"],
    "iso-8859-8": ["csiso88598e", "csisolatinhebrew", "hebrew", "iso-8859-8", "iso-8859-8-e", "iso-ir-138", "iso8859-8", "iso88598", "iso_8859-8", "iso_8859-8:1988", "visual"],
    "iso-8859-8-i": ["csiso88598i", "iso-8859-8-i", "logical"],
    "iso-8859-10": ["csisolatin6", "iso-8859-10", "iso-ir-157", "iso8859-10", "iso885910", "l6", "latin6"],
    "iso-8859-13": ["iso-8859-13", "iso8859-13", "iso885913"], "iso-8859-14": ["iso-8859-14", "iso8859-14", "iso885914"],
    "iso-8859-15": ["csisolatin9", "iso-8859-15", "iso8859-15", "iso885915", "iso_8859-15", "l9"], "iso-8859-16": ["iso-8859-16"],
    "koi8-r": ["cskoi8r", "koi", "koi8", "koi8-r", "koi8_r"], "koi8-u": ["koi8-ru", "koi8-u"], "macintosh": ["csmacintosh", "mac", "macintosh", "x-mac-roman"],
    "windows-874": ["dos-874", "iso-8859-11", "iso8859-11", "iso885911", "tis-620", "windows-874"], "windows-1250": ["cp1250", "windows-1250", "x-cp1250"],
    "windows-1251": ["cp1251", "windows-1251", "x-cp1251"],
    "windows-1252": ["ansi_x3.4-1968", "ascii", "cp1252", "cp819", "csisolatin1", "ibm819", "iso-8859-1", "iso-ir-100", "iso8859-1", "iso88591", "iso_8859-1", "iso_8859-1:1987", "l1", "latin1", "us-ascii", "windows-1252", "x-cp1252"],
    "windows-1253": ["cp1253", "windows-1253", "x-cp1253"],
    "windows-1254": ["cp1254", "csisolatin5", "iso-8859-9", "iso-ir-148", "iso8859-9", "iso88599", "iso_8859-9", "iso_8859-9:1989", "l5", "latin5", "windows-1254", "x-cp1254"],
    "windows-1255": ["cp1255", "windows-1255", "x-cp1255"], "windows-1256": ["cp1256", "windows-1256", "x-cp1256"], "windows-1257": ["cp1257", "windows-1257", "x-cp1257"],
    "windows-1258": ["cp1258", "windows-1258", "x-cp1258"], "x-mac-cyrillic": ["x-mac-cyrillic", "x-mac-ukrainian"],
    "gbk": ["chinese", "csgb2312", "csiso58gb231280", "gb2312", "gb_2312", "gb_2312-80", "gbk", "iso-ir-58", "x-gbk"], "gb18030": ["gb18030"],
    "big5": ["big5", "big5-hkscs", "cn-big5", "csbig5", "x-x-big5"], "euc-jp": ["cseucpkdfmtjapanese", "euc-jp", "x-euc-jp"], "iso-2022-jp": ["csiso2022jp", "iso-2022-jp"],
    "shift_jis": ["csshiftjis", "ms932", "ms_kanji", "shift-jis", "shift_jis", "sjis", "windows-31j", "x-sjis"],
    "euc-kr": ["cseuckr", "csksc56011987", "euc-kr", "iso-ir-149", "korean", "ks_c_5601-1987", "ks_c_5601-1989", "ksc5601", "ksc_5601", "windows-949"],
    "utf-16be": ["unicodefffe", "utf-16be"], "utf-16le": ["csunicode", "iso-10646-ucs-2", "ucs-2", "unicode", "unicodefeff", "utf-16", "utf-16le"],
    "x-user-defined": ["x-user-defined"],
  };
  let n = 0;
  for (const [name, list] of Object.entries(labels)) {
    for (const label of list) {
      for (const variant of [label, label.toUpperCase(), `\t\n\f\r ${label} `]) assert.equal(new TextDecoder(variant).encoding, name, variant);
      n++;
    }
  }
  assert.equal(n, 222);
  for (const label of ["replacement", "csiso2022kr", "hz-gb-2312", "iso-2022-cn", "iso-2022-cn-ext", "iso-2022-kr"]) assert.throws(() => new TextDecoder(label), RangeError, label);
});

test("single bytes", () => {
  const cases = {
    "ibm866": ["80 9f ff", "410 42f a0"], "iso-8859-2": ["80 a1 ff", "80 104 2d9"], "iso-8859-3": ["a5 a6 ff", "fffd 124 2d9"], "iso-8859-6": ["a1 c1 ff", "fffd 621 fffd"],
    "iso-8859-7": ["a4 ae ff", "20ac fffd fffd"], "iso-8859-8": ["a1 e0 fd", "fffd 5d0 200e"], "iso-8859-8-i": ["e0", "5d0"], "iso-8859-15": ["a4", "20ac"], "iso-8859-16": ["a4", "20ac"],
    "koi8-r": ["c1 ff", "430 42a"], "koi8-u": ["ae be", "45e 40e"], "macintosh": ["80 db f0", "c4 20ac f8ff"], "windows-874": ["80 81 db", "20ac 81 fffd"],
    "windows-1250": ["80 81 ff", "20ac 81 2d9"], "windows-1251": ["80 98 ff", "402 98 44f"], "windows-1252": ["80 81 8d 9f ff", "20ac 81 8d 178 ff"],
    "windows-1253": ["aa d2 c1", "fffd fffd 391"], "windows-1254": ["d0", "11e"], "windows-1255": ["ca d9 e0", "5ba fffd 5d0"], "windows-1256": ["80 ff", "20ac 6d2"],
    "windows-1257": ["a1 ff", "fffd 2d9"], "windows-1258": ["cc d2", "300 309"], "x-mac-cyrillic": ["80 ff", "410 20ac"], "x-user-defined": ["7f 80 ff", "7f f780 f7ff"],
    "iso-8859-4": ["a1", "104"], "iso-8859-5": ["a1 f0", "401 2116"], "iso-8859-10": ["a1", "104"], "iso-8859-13": ["a1", "201d"], "iso-8859-14": ["a1", "1e02"],
  };
  for (const [name, [input, expected]] of Object.entries(cases)) {
    assert.equal(points(new TextDecoder(name).decode(un(input))), expected, name);
    assert.equal(new TextDecoder(name).decode(new TextEncoder().encode("plain ASCII\0\x7f")), "plain ASCII\0\x7f", name);
    const fatal = new TextDecoder(name, { fatal: true });
    if (expected.includes("fffd")) assert.throws(() => fatal.decode(un(input)), TypeError, name);
    else assert.equal(points(fatal.decode(un(input))), expected);
    assert.equal(new TextDecoder(name).decode(bytes(0xef, 0xbb, 0xbf)).length, 3, "no BOM");
  }
});

test("many bytes", () => {
  const cases = [
    ["gbk", "c4e3bac3", "4f60 597d"], ["gbk", "80", "20ac"], ["gbk", "ff 41", "fffd 41"], ["gbk", "a2e3", "20ac"], ["gbk", "81", "fffd"], ["gbk", "8120", "fffd 20"],
    ["gb18030", "81308130 8431a439 90308130 e3329a35", "80 ffff 10000 10ffff"], ["gb18030", "8130813a", "fffd 30 fffd 3a"], ["gb18030", "81308120", "fffd 30 fffd 20"],
    ["gb18030", "a6d9 fe59 a3a0 a8bc", "fe10 9fb4 3000 1e3f"], ["gb18030", "8135f437", "e7c7"], ["gb18030", "8130", "fffd"], ["gb18030", "fe39fe39", "fffd"],
    ["big5", "a741a66e", "4f60 597d"], ["big5", "8862 8864 88a3 88a5", "ca 304 ca 30c ea 304 ea 30c"], ["big5", "8740", "43f0"], ["big5", "80 ff", "fffd fffd"], ["big5", "8130", "fffd 30"], ["big5", "a7", "fffd"],
    ["euc-jp", "c6fccbdc", "65e5 672c"], ["euc-jp", "8eb1", "ff71"], ["euc-jp", "8fb0a1", "4e02"], ["euc-jp", "8ea0", "fffd"], ["euc-jp", "8fb0", "fffd"], ["euc-jp", "8fb041", "fffd 41"], ["euc-jp", "8fa1a1", "fffd"],
    ["euc-jp", "8f41", "fffd 41"], ["euc-jp", "a141 ff", "fffd 41 fffd"], ["euc-jp", "a1c1", "ff5e"],
    ["shift_jis", "93fa967b", "65e5 672c"], ["shift_jis", "b1 80 5c 7e", "ff71 80 5c 7e"], ["shift_jis", "f040 f9fc", "e000 e757"], ["shift_jis", "a0 fd", "fffd fffd"], ["shift_jis", "8120", "fffd 20"], ["shift_jis", "81", "fffd"], ["shift_jis", "fa40", "2170"],
    ["euc-kr", "c7d1b1db", "d55c ae00"], ["euc-kr", "8141", "ac02"], ["euc-kr", "80 ff", "fffd fffd"], ["euc-kr", "b020", "fffd 20"], ["euc-kr", "c65b", "fffd 5b"], ["euc-kr", "a2e6", "20ac"],
    ["iso-2022-jp", "1b2442 467c 4b5c 1b2842 41", "65e5 672c 41"], ["iso-2022-jp", "1b284a 5c7e", "a5 203e"], ["iso-2022-jp", "1b2849 31", "ff71"], ["iso-2022-jp", "1b2440 2121", "3000"],
    ["iso-2022-jp", "1b2442 1b2842", "fffd"], ["iso-2022-jp", "1b", "fffd"], ["iso-2022-jp", "1b24", "fffd 24"], ["iso-2022-jp", "1b41", "fffd 41"], ["iso-2022-jp", "1b2842 1b2842 41", "fffd 41"],
    ["iso-2022-jp", "80 0e 0f", "fffd fffd fffd"], ["iso-2022-jp", "1b2442 46", "fffd"], ["iso-2022-jp", "1b2442 461b284241", "fffd 41"], ["iso-2022-jp", "1b2442 1b28", "fffd fffd"],
  ];
  for (const [name, input, expected] of cases) {
    assert.equal(points(new TextDecoder(name).decode(un(input))), expected, `${name} ${input}`);
    const fatal = new TextDecoder(name, { fatal: true });
    if (expected.includes("fffd")) assert.throws(() => fatal.decode(un(input)), TypeError, `${name} ${input}`);
    else assert.equal(points(fatal.decode(un(input))), expected);
    // The same, a byte at a time, and in two pieces at every place.
    const all = un(input);
    const single = new TextDecoder(name);
    let out = "";
    for (const b of all) out += single.decode(bytes(b), { stream: true });
    assert.equal(points(out + single.decode()), expected, `${name} ${input}, byte by byte`);
    for (let at = 0; at <= all.length; at++) {
      const d = new TextDecoder(name);
      assert.equal(points(d.decode(all.subarray(0, at), { stream: true }) + d.decode(all.subarray(at))), expected, `${name} ${input} ${at}`);
    }
  }
});

test("U+FFFD in GB 18030 is no mistake, and what is one leaves the bytes after it", () => {
  for (const name of ["gbk", "gb18030"]) {
    const fatal = new TextDecoder(name, { fatal: true });
    assert.equal(fatal.decode(un("8431a437")), "\ufffd");
    assert.equal(points(new TextDecoder(name).decode(un("8431a437 8130ff30 81ff41 817f fe39fe39 8431823a ff80"))), "fffd fffd 30 fffd 30 fffd 41 fffd 7f fffd fffd 31 fffd 3a fffd 20ac");
    for (const wrong of ["8130", "813081", "8130ff30", "81ff", "8120", "817f", "fe39fe39", "8431a530", "8f39fe39", "e3329a36", "ff"]) assert.throws(() => fatal.decode(un(wrong)), TypeError, wrong);
  }
});

test("what a stream left is forgotten by the next one", () => {
  const d = new TextDecoder("iso-2022-jp");
  assert.equal(d.decode(un("1b2442467c"), { stream: true }), "\u65e5");
  assert.equal(d.decode(un("467c"), { stream: true }), "\u65e5");
  assert.equal(d.decode(), "");
  assert.equal(d.decode(un("467c")), "F|");
  const g = new TextDecoder("gb18030", { fatal: true });
  assert.equal(g.decode(un("8130"), { stream: true }), "");
  assert.throws(() => g.decode(), TypeError);
  assert.equal(g.decode(un("41")), "A");
});

test("much at once is decoded as a little is", () => {
  for (const [name, input, text] of [["gb18030", "81308130", "\u0080"], ["euc-jp", "8fb0a1", "\u4e02"], ["shift_jis", "93fa41", "\u65e5A"], ["iso-2022-jp", "1b2442467c1b284241", "\u65e5A"], ["koi8-r", "c1", "\u0430"]]) {
    const unit = un(input);
    const times = Math.ceil(1300000 / unit.length);
    const all = new Uint8Array(times * unit.length + 1);
    all.set(unit);
    for (let n = unit.length; n < all.length; n *= 2) all.copyWithin(n, 0, n);
    all[all.length - 1] = 65;
    const expected = text.repeat(times) + "A";
    const d = new TextDecoder(name, { fatal: true });
    assert.equal(d.decode(all) === expected, true, name);
    assert.equal(d.decode(all.subarray(0, -2), { stream: true }) + d.decode(all.subarray(-2)) === expected, true, name);
  }
});

test("utf-16: the end", () => {
  for (const [input, expected] of [["00d8", "fffd"], ["00", "fffd"], ["00d800", "fffd"], ["00d84100", "fffd 41"], ["4100 00dc", "41 fffd"], ["00d8 00d8 00dc", "fffd 10000"], ["3dd800de", "1f600"]]) {
    assert.equal(points(new TextDecoder("utf-16le").decode(un(input))), expected, input);
    const all = un(input);
    for (let at = 0; at <= all.length; at++) {
      const d = new TextDecoder("utf-16le");
      assert.equal(points(d.decode(all.subarray(0, at), { stream: true }) + d.decode(all.subarray(at))), expected, `${input} ${at}`);
    }
    const swapped = all.slice();
    for (let i = 0; i + 1 < swapped.length; i += 2) [swapped[i], swapped[i + 1]] = [swapped[i + 1], swapped[i]];
    if (all.length % 2 === 0) assert.equal(points(new TextDecoder("utf-16be").decode(swapped)), expected);
    if (expected.includes("fffd")) assert.throws(() => new TextDecoder("utf-16le", { fatal: true }).decode(all), TypeError);
  }
});

// ---- streams ----

async function through(stream, ...chunks) {
  const writer = stream.writable.getWriter();
  const written = (async () => {
    for (const chunk of chunks) await writer.write(chunk);
    await writer.close();
  })();
  written.catch(() => {});
  const out = [];
  for await (const chunk of stream.readable) out.push(chunk);
  await written;
  return out;
}

test("TextDecoderStream", async () => {
  assert.equal(TextDecoderStream.length, 0);
  for (const name of ["encoding", "fatal", "ignoreBOM", "readable", "writable"]) {
    const d = Object.getOwnPropertyDescriptor(TextDecoderStream.prototype, name);
    assert.deepEqual([d.get.name, d.set, d.enumerable, d.configurable], [`get ${name}`, undefined, true, true]);
    assert.throws(() => TextDecoderStream.prototype[name], TypeError);
  }
  const s = new TextDecoderStream("LATIN1", { fatal: true, ignoreBOM: 1 });
  assert.deepEqual([s.encoding, s.fatal, s.ignoreBOM], ["windows-1252", true, true]);
  assert.ok(s.readable instanceof ReadableStream && s.writable instanceof WritableStream);
  assert.throws(() => new TextDecoderStream("nonsense"), RangeError);
  assert.throws(() => new TextDecoderStream("utf-8", 5), TypeError);
  assert.throws(() => TextDecoderStream(), TypeError);
  const smile = [0xf0, 0x9f, 0x98, 0x80];
  assert.deepEqual(await through(new TextDecoderStream(), bytes(97, ...smile.slice(0, 2)), bytes(...smile.slice(2), 98)), ["a", "😀b"]);
  assert.deepEqual(await through(new TextDecoderStream(), bytes(smile[0]), bytes(), bytes(...smile.slice(1))), ["😀"], "nothing is not enqueued");
  assert.deepEqual(await through(new TextDecoderStream(), bytes(97, 0xe2)), ["a", "\ufffd"], "the end of what was begun");
  assert.deepEqual(await through(new TextDecoderStream(), bytes(0xef, 0xbb), bytes(0xbf, 97), bytes(0xef, 0xbb, 0xbf)), ["a", "\ufeff"]);
  assert.deepEqual(await through(new TextDecoderStream("utf-8", { ignoreBOM: true }), bytes(0xef, 0xbb, 0xbf)), ["\ufeff"]);
  assert.deepEqual(await through(new TextDecoderStream("shift_jis"), bytes(0x93), bytes(0xfa, 0x96), bytes(0x7b).buffer), ["日", "本"]);
  assert.deepEqual(await through(new TextDecoderStream(), new DataView(bytes(97, 98, 99).buffer, 1)), ["bc"]);
  assert.deepEqual(await through(new TextDecoderStream()), []);
  await assert.rejects(through(new TextDecoderStream("utf-8", { fatal: true }), bytes(0xff)), TypeError);
  await assert.rejects(through(new TextDecoderStream("utf-8", { fatal: true }), bytes(0xe2)), TypeError, "at the end");
  for (const bad of ["text", 5, null, undefined, {}, [97]]) await assert.rejects(through(new TextDecoderStream(), bad), TypeError, String(bad));
  assert.equal(await new Response(new Response("häppy").body.pipeThrough(new TextDecoderStream()).pipeThrough(new TextEncoderStream())).text(), "häppy");
});

test("TextEncoderStream", async () => {
  assert.equal(TextEncoderStream.length, 0);
  for (const name of ["encoding", "readable", "writable"]) {
    const d = Object.getOwnPropertyDescriptor(TextEncoderStream.prototype, name);
    assert.deepEqual([d.get.name, d.set, d.enumerable, d.configurable], [`get ${name}`, undefined, true, true]);
    assert.throws(() => TextEncoderStream.prototype[name], TypeError);
  }
  assert.equal(new TextEncoderStream().encoding, "utf-8");
  assert.throws(() => TextEncoderStream(), TypeError);
  const run = async (...chunks) => (await through(new TextEncoderStream(), ...chunks)).map((c) => [...c]);
  assert.deepEqual(await run("a", "é", ""), [[97], [0xc3, 0xa9]]);
  assert.deepEqual(await run("\ud83d", "\ude00"), [[0xf0, 0x9f, 0x98, 0x80]], "halves of a pair");
  assert.deepEqual(await run("a\ud83d", "", "\ude00b"), [[97], [0xf0, 0x9f, 0x98, 0x80, 98]]);
  assert.deepEqual(await run("\ud83d", "x"), [[0xef, 0xbf, 0xbd, 120]]);
  assert.deepEqual(await run("\ud83d", "\ud83d", "\ude00"), [[0xef, 0xbf, 0xbd], [0xf0, 0x9f, 0x98, 0x80]]);
  assert.deepEqual(await run("\ude00"), [[0xef, 0xbf, 0xbd]]);
  assert.deepEqual(await run("\ud83d"), [[0xef, 0xbf, 0xbd]], "at the end");
  assert.deepEqual(await run(5, null, undefined, [1, 2], { toString: () => "o" }), [[53], [...new TextEncoder().encode("null")], [...new TextEncoder().encode("undefined")], [49, 44, 50], [111]]);
  await assert.rejects(run(Symbol()), TypeError);
  await assert.rejects(run({ toString() { throw new RangeError("mine"); } }), RangeError);
  const [chunk] = await through(new TextEncoderStream(), "x");
  assert.equal(Object.getPrototypeOf(chunk), Uint8Array.prototype);
});
