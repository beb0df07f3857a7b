// crypto: random values, digests, HMAC.

const hex = (buffer) => [...new Uint8Array(buffer)].map((b) => b.toString(16).padStart(2, "0")).join("");
const bytes = (text) => new TextEncoder().encode(text);

test("getRandomValues", () => {
  for (const Class of [Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array, BigInt64Array, BigUint64Array]) {
    const array = new Class(32);
    assert.equal(crypto.getRandomValues(array), array);
    assert.ok(array.some((x) => x != 0), Class.name);
  }
  for (const Class of [Float32Array, Float64Array]) assert.throws(() => crypto.getRandomValues(new Class(1)), "TypeMismatchError");
  assert.throws(() => crypto.getRandomValues(new DataView(new ArrayBuffer(1))), "TypeMismatchError");
  for (const bad of [null, undefined, 5, [], new ArrayBuffer(1)]) assert.throws(() => crypto.getRandomValues(bad), TypeError);
  assert.throws(() => crypto.getRandomValues(new Uint8Array(65537)), "QuotaExceededError");
  assert.throws(() => crypto.getRandomValues(new Uint32Array(16385)), "QuotaExceededError");
  assert.equal(crypto.getRandomValues(new Uint8Array(65536)).length, 65536);
  assert.equal(crypto.getRandomValues(new Uint8Array(0)).length, 0);
  const part = new Uint8Array(8);
  crypto.getRandomValues(part.subarray(2, 4));
  assert.deepEqual([...part.subarray(4)], [0, 0, 0, 0]);
  assert.throws(() => Crypto.prototype.getRandomValues.call({}, part), TypeError);
  class Mine extends Uint8Array {}
  assert.ok(crypto.getRandomValues(new Mine(4)) instanceof Mine);
});

test("randomUUID", () => {
  const seen = new Set();
  for (let i = 0; i < 100; i++) {
    const id = crypto.randomUUID();
    assert.ok(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(id), id);
    seen.add(id);
  }
  assert.equal(seen.size, 100);
});

test("digest", async () => {
  const cases = {
    "SHA-1": "a9993e364706816aba3e25717850c26c9cd0d89d",
    "SHA-256": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    "SHA-384": "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7",
    "SHA-512": "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
  };
  for (const [name, expected] of Object.entries(cases)) {
    assert.equal(hex(await crypto.subtle.digest(name, bytes("abc"))), expected);
    assert.equal(hex(await crypto.subtle.digest({ name: name.toLowerCase() }, bytes("abc").buffer)), expected);
  }
  assert.equal(hex(await crypto.subtle.digest("sha-256", new DataView(bytes("xabcx").buffer, 1, 3))), cases["SHA-256"]);
  assert.ok((await crypto.subtle.digest("SHA-256", new Uint8Array())) instanceof ArrayBuffer);
  await assert.rejects(crypto.subtle.digest("MD4", bytes("")), "NotSupportedError");
  await assert.rejects(crypto.subtle.digest({}, bytes("")), TypeError);
  await assert.rejects(crypto.subtle.digest("SHA-256", "text"), TypeError);
  await assert.rejects(crypto.subtle.digest("SHA-256"), TypeError);
  await assert.rejects(SubtleCrypto.prototype.digest.call({}, "SHA-256", bytes("")), TypeError);
});

const HMAC = { name: "HMAC", hash: "SHA-256" };
const importRaw = (text, usages = ["sign", "verify"], extractable = true) => crypto.subtle.importKey("raw", bytes(text), HMAC, extractable, usages);

test("HMAC: sign and verify", async () => {
  const key = await importRaw("Jefe");
  const data = bytes("what do ya want for nothing?");
  const signature = await crypto.subtle.sign("HMAC", key, data);
  assert.equal(hex(signature), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  assert.equal(await crypto.subtle.verify("hmac", key, signature, data), true);
  const wrong = new Uint8Array(signature);
  wrong[0] ^= 1;
  assert.equal(await crypto.subtle.verify("HMAC", key, wrong, data), false);
  assert.equal(await crypto.subtle.verify("HMAC", key, wrong.subarray(0, 31), data), false);
  assert.equal(await crypto.subtle.verify("HMAC", key, new Uint8Array(), data), false);
  assert.equal(await crypto.subtle.verify(HMAC, key, signature, bytes("")), false);
});

test("HMAC: key attributes", async () => {
  const key = await importRaw("k", ["verify", "sign", "sign"]);
  assert.deepEqual([key.type, key.extractable, key.usages, key.algorithm], ["secret", true, ["sign", "verify"], { name: "HMAC", hash: { name: "SHA-256" }, length: 8 }]);
  assert.equal(key.usages, key.usages);
  assert.equal(Object.prototype.toString.call(key), "[object CryptoKey]");
  const made = await crypto.subtle.generateKey({ name: "HMAC", hash: { name: "SHA-512" } }, false, ["sign"]);
  assert.deepEqual([made.algorithm.length, made.extractable, made.usages], [1024, false, ["sign"]]);
  assert.equal((await crypto.subtle.generateKey({ name: "HMAC", hash: "SHA-1", length: 80 }, true, ["sign"])).algorithm.length, 80);
});

test("HMAC: export and jwk", async () => {
  const key = await importRaw("\u0000\u00ff??>>", ["sign"]);
  const raw = await crypto.subtle.exportKey("raw", key);
  assert.deepEqual([...new Uint8Array(raw)], [...bytes("\u0000\u00ff??>>")]);
  const jwk = await crypto.subtle.exportKey("jwk", key);
  assert.deepEqual(jwk, { alg: "HS256", ext: true, k: "AMO_Pz8-Pg", key_ops: ["sign"], kty: "oct" });
  const back = await crypto.subtle.importKey("jwk", jwk, HMAC, true, ["sign"]);
  assert.deepEqual([...new Uint8Array(await crypto.subtle.exportKey("raw", back))], [...new Uint8Array(raw)]);
  const bad = [{ kty: "RSA" }, { k: "a+b" }, { k: undefined }, { alg: "HS512" }, { use: "enc" }, { key_ops: ["verify"] }, { ext: false }, { k: "A" }];
  for (const change of bad) await assert.rejects(crypto.subtle.importKey("jwk", { ...jwk, ...change }, HMAC, true, ["sign"]), "DataError", JSON.stringify(change));
});

test("HMAC: refusals", async () => {
  const { subtle } = crypto;
  await assert.rejects(importRaw("k", []), "SyntaxError");
  await assert.rejects(importRaw("k", ["encrypt"]), "SyntaxError");
  await assert.rejects(importRaw("k", ["nonsense"]), TypeError);
  await assert.rejects(importRaw(""), "DataError");
  await assert.rejects(subtle.importKey("raw", bytes("k"), "HMAC", true, ["sign"]), TypeError);
  await assert.rejects(subtle.importKey("raw", bytes("k"), { name: "HMAC", hash: "MD5" }, true, ["sign"]), "NotSupportedError");
  await assert.rejects(subtle.importKey("raw", bytes("k"), { name: "AES-XTS" }, true, ["encrypt"]), "NotSupportedError");
  await assert.rejects(subtle.importKey("spki", bytes("k"), HMAC, true, ["sign"]), "NotSupportedError");
  await assert.rejects(subtle.importKey("x", bytes("k"), HMAC, true, ["sign"]), TypeError);
  await assert.rejects(subtle.importKey("raw", {}, HMAC, true, ["sign"]), TypeError);
  await assert.rejects(subtle.importKey("jwk", bytes("k"), HMAC, true, ["sign"]), TypeError);
  await assert.rejects(subtle.importKey("raw", bytes("k"), { ...HMAC, length: 9 }, true, ["sign"]), "DataError");
  const signOnly = await importRaw("k", ["sign"], false);
  await assert.rejects(subtle.verify("HMAC", signOnly, bytes(""), bytes("")), "InvalidAccessError");
  await assert.rejects(subtle.exportKey("raw", signOnly), "InvalidAccessError");
  await assert.rejects(subtle.sign("HMAC", {}, bytes("")), TypeError);
  await assert.rejects(subtle.sign("RSA-XYZ", signOnly, bytes("")), "NotSupportedError");
  await assert.rejects(subtle.generateKey({ name: "HMAC", hash: "SHA-1", length: 0 }, true, ["sign"]), "OperationError");
});

test("timingSafeEqual", () => {
  assert.equal(crypto.subtle.timingSafeEqual(bytes("abc"), bytes("abc")), true);
  assert.equal(crypto.subtle.timingSafeEqual(bytes("abc").buffer, bytes("abd")), false);
  assert.throws(() => crypto.subtle.timingSafeEqual(bytes("a"), bytes("ab")), TypeError);
  assert.throws(() => crypto.subtle.timingSafeEqual("a", "a"), TypeError);
});
