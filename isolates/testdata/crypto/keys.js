// crypto.subtle: how algorithms are normalized, what keys are and allow, wrapping, derivation of keys, and the interfaces.

const { subtle } = crypto;
const hex = (b) => [...new Uint8Array(b)].map((x) => x.toString(16).padStart(2, "0")).join("");
const text = (s) => new TextEncoder().encode(s);
const GCM = { name: "AES-GCM", iv: new Uint8Array(12) };
const aes = (name, usages, extractable = true) => subtle.generateKey({ name, length: 128 }, extractable, usages);

test("interfaces", () => {
  const names = ["encrypt", "decrypt", "sign", "verify", "digest", "generateKey", "deriveKey", "deriveBits", "importKey", "exportKey", "wrapKey", "unwrapKey"];
  const lengths = [3, 3, 3, 4, 2, 3, 5, 2, 5, 2, 4, 7];
  for (const [i, name] of names.entries()) {
    const d = Object.getOwnPropertyDescriptor(SubtleCrypto.prototype, name);
    assert.deepEqual([typeof d.value, d.enumerable, d.writable, d.configurable, d.value.name, d.value.length], ["function", true, true, true, name, lengths[i]]);
  }
  for (const name of ["type", "extractable", "algorithm", "usages"]) {
    const d = Object.getOwnPropertyDescriptor(CryptoKey.prototype, name);
    assert.deepEqual([typeof d.get, d.set, d.enumerable, d.configurable, d.get.name], ["function", undefined, true, true, `get ${name}`]);
    assert.throws(() => CryptoKey.prototype[name], TypeError);
    assert.throws(() => d.get.call(subtle), TypeError);
  }
  for (const Interface of [CryptoKey, SubtleCrypto, Crypto]) {
    assert.throws(() => new Interface(), TypeError);
    assert.throws(() => Interface(), TypeError);
    assert.equal(Interface.length, 0);
    assert.equal(Interface.prototype[Symbol.toStringTag], Interface.name);
    const d = Object.getOwnPropertyDescriptor(globalThis, Interface.name);
    assert.deepEqual([d.enumerable, d.writable, d.configurable], [false, true, true]);
  }
  assert.equal(crypto.subtle, crypto.subtle);
  assert.ok(subtle instanceof SubtleCrypto);
});

test("methods reject, whatever is wrong: they never throw", async () => {
  for (const name of ["encrypt", "decrypt", "sign", "verify", "digest", "generateKey", "deriveKey", "deriveBits", "importKey", "exportKey", "wrapKey", "unwrapKey"]) {
    const promise = subtle[name]();
    assert.ok(promise instanceof Promise, name);
    await assert.rejects(promise, TypeError, name);
    for (const self of [undefined, null, 5, "x", {}, crypto, Object.create(subtle)]) await assert.rejects(SubtleCrypto.prototype[name].call(self, "SHA-256", text(""), 1, 2, 3, 4, 5), TypeError, name);
  }
});

test("normalizing: names without regard to case, of ASCII only", async () => {
  for (const name of ["sha-256", "Sha-256", "SHA-256"]) assert.equal((await subtle.digest(name, text(""))).byteLength, 32);
  for (const name of ["SHA256", "SHA-224", "SHA-3", "\u017fHA-256", "\u017fha-1", "", " SHA-256", "toString", "__proto__", "constructor", "HMAC", "AES-GCM"]) {
    await assert.rejects(subtle.digest(name, text("")), "NotSupportedError", name);
    await assert.rejects(subtle.digest({ name }, text("")), "NotSupportedError", name);
  }
  for (const bad of [undefined, null, 5, true]) await assert.rejects(subtle.digest(bad, text("")), "NotSupportedError", "it is a string");
  for (const bad of [{}, [], () => {}, { name: undefined }, new Map()]) await assert.rejects(subtle.digest(bad, text("")), bad instanceof Function ? "NotSupportedError" : TypeError);
  await assert.rejects(subtle.digest(Symbol(), text("")), TypeError);
  await assert.rejects(subtle.digest({ name: Symbol() }, text("")), TypeError);
  await assert.rejects(subtle.digest({ get name() { throw new RangeError("mine"); } }, text("")), RangeError);
  assert.equal((await subtle.digest({ name: { toString: () => "sha-1" } }, text(""))).byteLength, 20);
  assert.equal((await subtle.digest({ toString: () => "SHA-256", name: "SHA-1" }, text(""))).byteLength, 20);
});

test("normalizing: members in the order of the dictionaries", async () => {
  const seen = [];
  const log = (object) => new Proxy(object, { get: (target, key) => { seen.push(String(key)); return target[key]; } });
  const take = () => seen.splice(0).join(" ");
  await subtle.generateKey(log({ name: "HMAC", length: 8, hash: "SHA-1" }), true, ["sign"]);
  assert.equal(take(), "name name hash length");
  const key = await aes("AES-GCM", ["encrypt"]);
  take();
  await subtle.encrypt(log({ ...GCM, tagLength: 128, additionalData: text("") }), key, text(""));
  assert.equal(take(), "name name additionalData iv tagLength");
  const ctr = await aes("AES-CTR", ["encrypt"]);
  await subtle.encrypt(log({ name: "AES-CTR", length: 128, counter: new Uint8Array(16) }), ctr, text(""));
  assert.equal(take(), "name name counter length");
  const base = await subtle.importKey("raw", text("x"), log({ name: "PBKDF2" }), false, ["deriveBits"]);
  assert.equal(take(), "name", "no parameters, no second conversion");
  await subtle.deriveBits(log({ name: "PBKDF2", salt: text(""), iterations: 1, hash: "SHA-1" }), base, 8);
  assert.equal(take(), "name name hash iterations salt");
  await subtle.importKey("jwk", log({ kty: "oct", k: "AAAA" }), { name: "HMAC", hash: "SHA-1" }, true, ["sign"]);
  assert.equal(take(), "alg crv d dp dq e ext k key_ops kty n oth p q qi use x y");
});

test("arguments are converted in order, and before anything is done", async () => {
  const order = [];
  const string = (name, value) => ({ toString() { order.push(name); return value; } });
  await assert.rejects(subtle.importKey(string("format", "raw"), text("k"), { get name() { order.push("algorithm"); return "HMAC"; }, hash: "SHA-1" }, true,
    { *[Symbol.iterator]() { order.push("usages"); yield string("usage", "sign"); yield "nonsense"; } }), TypeError);
  assert.deepEqual(order, ["format", "usages", "usage"]);
  await assert.rejects(subtle.importKey("nonsense", 5, 5, 5, 5), TypeError);
  await assert.rejects(subtle.importKey("raw", 5, "HMAC", true, []), TypeError);
  await assert.rejects(subtle.importKey("raw", text("k"), "HMAC", true, 5), TypeError, "usages");
  await assert.rejects(subtle.importKey("raw", text("k"), "XYZ", true, ["sign"]), "NotSupportedError");
  await assert.rejects(subtle.importKey("raw", undefined, { name: "HMAC", hash: "SHA-1" }, true, ["sign"]), TypeError);
  await assert.rejects(subtle.importKey("jwk", undefined, { name: "HMAC", hash: "SHA-1" }, true, ["sign"]), "DataError", "a dictionary without members");
  await assert.rejects(subtle.exportKey("raw", {}), TypeError);
  await assert.rejects(subtle.exportKey("nonsense", await aes("AES-GCM", ["encrypt"])), TypeError);
});

test("usages and algorithms of keys are checked", async () => {
  const key = await aes("AES-GCM", ["encrypt"]);
  await assert.rejects(subtle.decrypt(GCM, key, new Uint8Array(16)), "InvalidAccessError");
  await assert.rejects(subtle.encrypt({ name: "AES-CBC", iv: new Uint8Array(16) }, key, text("")), "InvalidAccessError");
  await assert.rejects(subtle.encrypt({ name: "AES-XTS" }, key, text("")), "NotSupportedError");
  await assert.rejects(subtle.encrypt("HMAC", key, text("")), "NotSupportedError", "HMAC does not encrypt");
  await assert.rejects(subtle.sign("HMAC", key, text("")), "InvalidAccessError");
  await assert.rejects(subtle.encrypt(GCM, {}, text("")), TypeError);
  await assert.rejects(subtle.encrypt(GCM, key, "text"), TypeError);
  await assert.rejects(subtle.wrapKey("raw", key, key, GCM), "InvalidAccessError");
  const unusable = { "AES-GCM": ["sign"], "AES-CBC": ["deriveBits"], "AES-CTR": ["verify"], "AES-KW": ["encrypt"] };
  for (const [name, usages] of Object.entries(unusable)) {
    await assert.rejects(aes(name, usages), "SyntaxError", name);
    await assert.rejects(aes(name, []), "SyntaxError", name);
    await assert.rejects(subtle.importKey("raw", new Uint8Array(16), name, true, usages), "SyntaxError", name);
    await assert.rejects(subtle.importKey("raw", new Uint8Array(16), name, true, []), "SyntaxError", name);
    for (const length of [0, 64, 127, 129, 512]) await assert.rejects(subtle.generateKey({ name, length }, true, ["wrapKey"]), "OperationError", length);
    for (const length of [undefined, -1, 65536, NaN]) await assert.rejects(subtle.generateKey({ name, length }, true, ["wrapKey"]), TypeError);
    for (const n of [0, 15, 17, 20, 33]) await assert.rejects(subtle.importKey("raw", new Uint8Array(n), name, true, ["wrapKey"]), "DataError", n);
    await assert.rejects(subtle.importKey("spki", new Uint8Array(16), name, true, ["wrapKey"]), "NotSupportedError");
  }
});

test("what a key shows is the same object each time, and changing it changes nothing", async () => {
  const key = await aes("AES-GCM", ["decrypt", "encrypt", "unwrapKey", "encrypt"]);
  assert.equal(key.algorithm, key.algorithm);
  assert.equal(key.usages, key.usages);
  assert.deepEqual(key.usages, ["encrypt", "decrypt", "unwrapKey"], "in the order of the standard, once each");
  assert.deepEqual(Object.entries(key.algorithm), [["name", "AES-GCM"], ["length", 128]]);
  key.algorithm.name = "AES-CBC";
  key.usages.length = 0;
  assert.equal((await subtle.encrypt(GCM, key, text(""))).byteLength, 16);
  await assert.rejects(subtle.encrypt({ name: "AES-CBC", iv: new Uint8Array(16) }, key, text("")), "InvalidAccessError");
  const hmac = await subtle.generateKey({ name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  assert.deepEqual(Object.keys(hmac.algorithm), ["name", "hash", "length"]);
  assert.throws(() => { hmac.extractable = true; }, TypeError);
  await assert.rejects(subtle.exportKey("raw", hmac), "InvalidAccessError");
});

test("JSON Web Keys of secrets", async () => {
  for (const [name, suffix] of [["AES-GCM", "GCM"], ["AES-CBC", "CBC"], ["AES-CTR", "CTR"], ["AES-KW", "KW"]]) {
    for (const length of [128, 192, 256]) {
      const key = await subtle.generateKey({ name, length }, true, ["wrapKey", "unwrapKey"]);
      const jwk = await subtle.exportKey("jwk", key);
      assert.deepEqual(Object.keys(jwk), ["alg", "ext", "k", "key_ops", "kty"]);
      assert.deepEqual([jwk.alg, jwk.ext, jwk.key_ops, jwk.kty], [`A${length}${suffix}`, true, ["wrapKey", "unwrapKey"], "oct"]);
      const back = await subtle.importKey("jwk", jwk, name, true, ["wrapKey"]);
      assert.equal(hex(await subtle.exportKey("raw", back)), hex(await subtle.exportKey("raw", key)));
      const bad = { alg: "A512GCM", ext: false, k: undefined, key_ops: ["unwrapKey"], kty: "EC", use: "sig" };
      for (const [member, value] of Object.entries(bad)) await assert.rejects(subtle.importKey("jwk", { ...jwk, [member]: value }, name, true, ["wrapKey"]), "DataError", member);
      for (const k of ["AAAA", jwk.k + "=", jwk.k + "\n", "+" + jwk.k.slice(1), "/" + jwk.k.slice(1)]) await assert.rejects(subtle.importKey("jwk", { ...jwk, k }, name, true, ["wrapKey"]), "DataError", k);
      await assert.rejects(subtle.importKey("jwk", { ...jwk, key_ops: ["wrapKey", "wrapKey"] }, name, true, ["wrapKey"]), "DataError", "twice");
      await assert.rejects(subtle.importKey("jwk", { ...jwk, key_ops: "wrapKey" }, name, true, ["wrapKey"]), TypeError);
      assert.equal((await subtle.importKey("jwk", { ...jwk, ext: false }, name, false, ["wrapKey"])).extractable, false);
      assert.equal((await subtle.importKey("jwk", { kty: "oct", k: jwk.k }, name, false, ["wrapKey"])).type, "secret");
    }
  }
});

test("keys are wrapped and unwrapped, in every format and by every cipher", async () => {
  const oaep = await subtle.generateKey({ name: "RSA-OAEP", modulusLength: 2048, publicExponent: new Uint8Array([1, 0, 1]), hash: "SHA-256" }, false, ["wrapKey", "unwrapKey"]);
  const gcm = await aes("AES-GCM", ["wrapKey", "unwrapKey"], false);
  const cbc = await aes("AES-CBC", ["wrapKey", "unwrapKey"], false);
  const ctr = await aes("AES-CTR", ["wrapKey", "unwrapKey"], false);
  const wrappers = [[GCM, gcm, gcm], [{ name: "AES-CBC", iv: new Uint8Array(16) }, cbc, cbc], [{ name: "AES-CTR", counter: new Uint8Array(16), length: 64 }, ctr, ctr],
    [{ name: "RSA-OAEP" }, oaep.publicKey, oaep.privateKey]];
  const ec = await subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, true, ["sign", "verify"]);
  const ed = await subtle.generateKey("Ed25519", true, ["sign", "verify"]);
  const hmac = await subtle.generateKey({ name: "HMAC", hash: "SHA-256", length: 128 }, true, ["sign"]);
  const keys = [["raw", hmac, { name: "HMAC", hash: "SHA-256" }], ["jwk", hmac, { name: "HMAC", hash: "SHA-256" }], ["pkcs8", ec.privateKey, { name: "ECDSA", namedCurve: "P-256" }],
    ["spki", ec.publicKey, { name: "ECDSA", namedCurve: "P-256" }], ["raw", ec.publicKey, { name: "ECDSA", namedCurve: "P-256" }], ["jwk", ed.publicKey, "Ed25519"], ["pkcs8", ed.privateKey, "Ed25519"]];
  for (const [alg, wrap, unwrap] of wrappers) {
    for (const [format, key, keyAlg] of keys) {
      if (alg.name === "RSA-OAEP" && format === "jwk" && key !== ed.publicKey) continue; // may be longer than OAEP holds
      const wrapped = await subtle.wrapKey(format, key, wrap, alg);
      assert.ok(wrapped instanceof ArrayBuffer);
      const back = await subtle.unwrapKey(format, wrapped, unwrap, alg, keyAlg, true, key.usages);
      assert.deepEqual([back.type, back.usages, back.algorithm], [key.type, key.usages, key.algorithm], `${alg.name} ${format}`);
      const a = await subtle.exportKey(format, back);
      const b = await subtle.exportKey(format, key);
      if (format === "jwk") assert.deepEqual(a, b);
      else assert.equal(hex(a), hex(b));
      if (alg.name !== "AES-CTR") await assert.rejects(subtle.unwrapKey(format, new Uint8Array(5), unwrap, alg, keyAlg, true, key.usages), "OperationError");
      else if (key !== hmac) await assert.rejects(subtle.unwrapKey(format, new Uint8Array(5), unwrap, alg, keyAlg, true, key.usages), "DataError");
    }
  }
  await assert.rejects(subtle.wrapKey("raw", gcm, gcm, GCM), "InvalidAccessError", "not extractable");
  await assert.rejects(subtle.wrapKey("raw", hmac, hmac, GCM), "InvalidAccessError");
  await assert.rejects(subtle.wrapKey("raw", hmac, gcm, "HMAC"), "NotSupportedError");
  await assert.rejects(subtle.wrapKey("spki", hmac, gcm, GCM), "NotSupportedError");
  await assert.rejects(subtle.unwrapKey("raw", await subtle.wrapKey("raw", hmac, gcm, GCM), gcm, GCM, "AES-GCM", true, []), "SyntaxError");
  const pbkdf2 = await subtle.importKey("raw", text("x"), "PBKDF2", false, ["deriveBits"]);
  await assert.rejects(subtle.wrapKey("raw", pbkdf2, gcm, GCM), "NotSupportedError");
});

test("a wrapped JSON Web Key must be one, and a guest's toJSON does not see it", async () => {
  const key = await aes("AES-CTR", ["encrypt", "decrypt", "wrapKey", "unwrapKey"]);
  const alg = { name: "AES-CTR", counter: new Uint8Array(16), length: 64 };
  const unwrap = async (json) => subtle.unwrapKey("jwk", await subtle.encrypt(alg, key, text(json)), key, alg, "AES-CBC", true, ["encrypt"]);
  assert.equal((await unwrap('{"kty":"oct","k":"AAAAAAAAAAAAAAAAAAAAAA"}')).type, "secret");
  for (const json of ["", "nonsense", "5", "null", '"x"', "{}", '{"k":"AAAAAAAAAAAAAAAAAAAAAA"}', "[]"]) await assert.rejects(unwrap(json), "DataError", json);
  let seen = 0;
  await patched(Object.prototype, "toJSON", { value() { seen++; return {}; } }, async () => patched(Array.prototype, "toJSON", { value() { seen++; return 1; } }, async () => {
    const wrapped = await subtle.wrapKey("jwk", key, key, alg);
    const jwk = JSON.parse(new TextDecoder().decode(await subtle.decrypt(alg, key, wrapped)));
    assert.equal(jwk.alg, "A128CTR");
  }));
  assert.equal(seen, 0);
  await patched(Object.prototype, "kty", { get() { seen++; return "oct"; } }, () => assert.rejects(unwrap('{"k":"AAAAAAAAAAAAAAAAAAAAAA"}'), "DataError"));
  assert.equal(seen, 0);
});

test("keys are derived", async () => {
  const base = await subtle.importKey("raw", text("password"), "PBKDF2", false, ["deriveKey", "deriveBits"]);
  const alg = { name: "PBKDF2", hash: "SHA-256", salt: text("salt"), iterations: 10 };
  const bits = hex(await subtle.deriveBits(alg, base, 1024));
  const derive = (to, usages, extractable = true) => subtle.deriveKey(alg, base, to, extractable, usages);
  for (const length of [128, 192, 256]) {
    for (const name of ["AES-GCM", "AES-CBC", "AES-CTR", "AES-KW"]) {
      const key = await derive({ name, length }, ["wrapKey"]);
      assert.deepEqual([key.algorithm.length, hex(await subtle.exportKey("raw", key))], [length, bits.slice(0, length / 4)]);
    }
  }
  for (const [hash, length] of [["SHA-1", 512], ["SHA-256", 512], ["SHA-384", 1024], ["SHA-512", 1024]]) {
    assert.equal((await derive({ name: "HMAC", hash }, ["sign"])).algorithm.length, length, hash);
  }
  const short = await derive({ name: "HMAC", hash: "SHA-256", length: 128 }, ["sign"]);
  assert.equal(hex(await subtle.exportKey("raw", short)), bits.slice(0, 32));
  await assert.rejects(derive({ name: "HMAC", hash: "SHA-256", length: 0 }, ["sign"]), TypeError);
  await assert.rejects(derive({ name: "AES-GCM", length: 64 }, ["encrypt"]), "OperationError");
  await assert.rejects(derive({ name: "AES-GCM" }, ["encrypt"]), TypeError);
  await assert.rejects(derive({ name: "AES-GCM", length: 128 }, []), "SyntaxError");
  await assert.rejects(derive({ name: "AES-GCM", length: 128 }, ["sign"]), "SyntaxError");
  await assert.rejects(derive({ name: "ECDSA", namedCurve: "P-256" }, ["sign"]), "NotSupportedError");
  await assert.rejects(derive("HKDF", ["deriveBits"], false), "OperationError", "PBKDF2 has no natural length");
  const a = await subtle.generateKey("X25519", false, ["deriveKey"]);
  const b = await subtle.generateKey("X25519", false, ["deriveKey"]);
  const hkdf = (own, other) => subtle.deriveKey({ name: "X25519", public: other.publicKey }, own.privateKey, "HKDF", false, ["deriveBits"]);
  const params = { name: "HKDF", hash: "SHA-256", salt: text(""), info: text("") };
  assert.equal(hex(await subtle.deriveBits(params, await hkdf(a, b), 256)), hex(await subtle.deriveBits(params, await hkdf(b, a), 256)));
  await assert.rejects(subtle.deriveBits({ name: "X25519", public: b.publicKey }, a.privateKey, 256), "InvalidAccessError", "only for deriveKey");
  const onlyBits = await subtle.importKey("raw", text("x"), "PBKDF2", false, ["deriveBits"]);
  await assert.rejects(subtle.deriveKey(alg, onlyBits, { name: "AES-GCM", length: 128 }, true, ["encrypt"]), "InvalidAccessError");
});

test("keys are cloned by structuredClone, and stay as secret as they were", async () => {
  const key = await subtle.generateKey({ name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  const { copy } = structuredClone({ copy: key });
  assert.notEqual(copy, key);
  assert.ok(copy instanceof CryptoKey);
  assert.deepEqual([copy.type, copy.extractable, copy.algorithm, copy.usages], [key.type, key.extractable, key.algorithm, key.usages]);
  assert.equal(hex(await subtle.sign("HMAC", copy, text("x"))), hex(await subtle.sign("HMAC", key, text("x"))));
  await assert.rejects(subtle.exportKey("raw", copy), "InvalidAccessError");
  const pair = structuredClone(await subtle.generateKey("Ed25519", true, ["sign", "verify"]));
  assert.equal(await subtle.verify("Ed25519", pair.publicKey, await subtle.sign("Ed25519", pair.privateKey, text("x")), text("x")), true);
  assert.throws(() => structuredClone(subtle), "DataCloneError");
});

test("many operations at once", async () => {
  const pair = await subtle.generateKey({ name: "ECDSA", namedCurve: "P-384" }, false, ["sign", "verify"]);
  const alg = { name: "ECDSA", hash: "SHA-384" };
  const signatures = await Promise.all(Array.from({ length: 40 }, (_, i) => subtle.sign(alg, pair.privateKey, text(String(i)))));
  const results = await Promise.all(signatures.map((s, i) => subtle.verify(alg, pair.publicKey, s, text(String(i)))));
  assert.ok(results.every((x) => x === true));
});
