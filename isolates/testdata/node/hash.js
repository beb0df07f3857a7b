import { builtin } from "pinwheel:node";
const crypto = builtin("crypto");

const thrown = (f) => {
  try {
    return f();
  } catch (error) {
    return `${error.name} ${error.code}`;
  }
};

test("hashes", () => {
  assert.equal(crypto.createHash("sha256").update("abc").digest("hex"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  assert.equal(crypto.createHash("MD5").update("a").update(Buffer.from("b")).update("63", "hex").digest("base64"), "kAFQmDzST7DWlj99KOF/cg==");
  const long = Buffer.alloc(3000000, "abc");
  for (const name of ["sha1", "sha512", "sha3-256", "blake2b512", "blake2s256", "shake256", "sha512-224"]) {
    const whole = crypto.createHash(name).update(long).digest("hex");
    const parts = crypto.createHash(name);
    for (let at = 0; at < long.length; at += 99991) parts.update(long.subarray(at, at + 99991));
    assert.equal(parts.copy().digest("hex"), whole, name);
    assert.equal(parts.digest("hex"), whole, name);
  }
  assert.equal(crypto.createHash("ripemd160").update("a").update("bc").digest("hex"), "8eb208f7e05d987a9b044a8e98c6b087f15a0bfc");
  assert.equal(thrown(() => crypto.createHash("ripemd160").update(Buffer.alloc(4000000))), "Error ERR_CRYPTO_OPERATION_FAILED");
});

test("hash as a stream", async () => {
  const { pipeline } = builtin("stream/promises"), { Readable } = builtin("stream");
  const hash = crypto.createHash("sha256");
  assert.equal(hash instanceof builtin("stream").Transform, true);
  await pipeline(Readable.from(["a", "bc"]), hash);
  assert.equal(hash.read().toString("hex"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  const mac = crypto.createHmac("sha256", "key");
  mac.end("abc");
  const chunks = [];
  for await (const c of mac) chunks.push(c);
  assert.equal(Buffer.concat(chunks).toString("hex"), crypto.createHmac("sha256", "key").update("abc").digest("hex"));
});

test("HMAC in parts", () => {
  const data = Buffer.alloc(1000000, 7), key = Buffer.alloc(200, 3);
  for (const name of ["md5", "sha256", "sha384", "sha3-512"]) {
    const mac = crypto.createHmac(name, key);
    for (let at = 0; at < data.length; at += 77777) mac.update(data.subarray(at, at + 77777));
    const first = mac.digest("hex");
    assert.equal(first.length > 0, true);
    const again = crypto.createHmac(name, crypto.createHash(name).update(key).digest());
    if (key.length > 144) assert.equal(again.update(data).digest("hex"), first, name);
  }
});

test("derivations", async () => {
  const { promisify } = builtin("util");
  const sync = crypto.pbkdf2Sync("password", "salt", 70000, 50, "sha1").toString("hex");
  assert.equal((await promisify(crypto.pbkdf2)("password", "salt", 70000, 50, "sha1")).toString("hex"), sync);
  assert.equal(crypto.pbkdf2Sync("password", "salt", 4096, 20, "sha1").toString("hex"), "4b007901b765489abead49d926f721d065a429c1");
  const s = crypto.scryptSync("password", "NaCl", 64, { N: 1024, r: 8, p: 16 }).toString("hex");
  assert.equal(s, "fdbabe1c9d3472007856e7190d01e9fe7c6ad7cbc8237830e77376634b3731622eaf30d92e22a3886ff109279d9830dac727afb94a83ee6d8360cbdfa2cc0640");
  assert.equal((await promisify(crypto.scrypt)("password", "NaCl", 64, { N: 1024, r: 8, p: 16 })).toString("hex"), s);
  assert.equal(crypto.hkdfSync("sha256", "a", "b", "c", 5).byteLength, 5);
  assert.equal(thrown(() => crypto.scryptSync("a", "b", 64, { N: 2 ** 30, maxmem: 2 ** 50 })), "RangeError ERR_CRYPTO_INVALID_SCRYPT_PARAMS");
  assert.equal(thrown(() => crypto.scryptSync("a", "b", 64, { N: 2 ** 14, p: 1000, maxmem: 2 ** 50 })), "RangeError ERR_CRYPTO_INVALID_SCRYPT_PARAMS");
  assert.equal(thrown(() => crypto.pbkdf2Sync("a", "b", 2 ** 31 - 1, 64, "sha512")), "RangeError ERR_OUT_OF_RANGE");
});

test("random values", async () => {
  assert.equal(crypto.randomBytes(70000).length, 70000);
  assert.equal(await new Promise((ok) => crypto.randomBytes(5, (error, bytes) => ok(bytes.length))), 5);
  for (let i = 0; i < 100; i++) assert.equal([3, 4].includes(crypto.randomInt(3, 5)), true);
  const a = new Uint16Array(4);
  crypto.randomFillSync(a, 2);
  assert.deepEqual([a[0], a[1]], [0, 0]);
  assert.equal(thrown(() => crypto.randomBytes(2147483647)), "RangeError undefined");
  assert.equal(crypto.timingSafeEqual(Buffer.from("a"), Buffer.from("a")), true);
  assert.equal(crypto.webcrypto, globalThis.crypto);
  assert.equal(crypto.subtle, globalThis.crypto.subtle);
});

test("callbacks keep their context", async () => {
  const { AsyncLocalStorage } = builtin("async_hooks");
  const store = new AsyncLocalStorage();
  assert.equal(await new Promise((ok) => store.run(7, () => crypto.scrypt("a", "b", 8, () => ok(store.getStore())))), 7);
  assert.equal(await new Promise((ok) => store.run(8, () => crypto.randomBytes(8, () => ok(store.getStore())))), 8);
});
