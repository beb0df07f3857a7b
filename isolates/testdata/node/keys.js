import { builtin } from "pinwheel:node";
const crypto = builtin("crypto");
const { promisify } = builtin("util");

const thrown = (f) => {
  try {
    return f();
  } catch (error) {
    return `${error.name} ${error.code}`;
  }
};

test("pairs of keys, written and read", async () => {
  for (const [type, options] of [["rsa", { modulusLength: 1024 }], ["ec", { namedCurve: "prime256v1" }], ["ec", { namedCurve: "P-521" }], ["ed25519"], ["x25519"]]) {
    for (const pair of [crypto.generateKeyPairSync(type, options), await promisify(crypto.generateKeyPair)(type, options)]) {
      const { publicKey, privateKey } = pair;
      assert.equal(`${publicKey.type} ${privateKey.type} ${publicKey.asymmetricKeyType}`, `public private ${type}`);
      const kinds = [["pem", "pkcs8", "spki"], ["der", "pkcs8", "spki"], ["jwk"]];
      if (type === "rsa") kinds.push(["pem", "pkcs1", "pkcs1"], ["der", "pkcs1", "pkcs1"]);
      if (type === "ec") kinds.push(["pem", "sec1", "spki"], ["der", "sec1", "spki"]);
      for (const [format, privateType, publicType] of kinds) {
        const secret = privateKey.export({ format, type: privateType });
        const open = publicKey.export({ format, type: publicType });
        const read = crypto.createPrivateKey({ key: secret, format, type: privateType });
        assert.equal(read.equals(privateKey), true, `${type} ${format} ${privateType}`);
        assert.equal(crypto.createPublicKey({ key: open, format, type: publicType }).equals(publicKey), true, `${type} ${format} ${publicType}`);
        assert.equal(crypto.createPublicKey({ key: secret, format, type: privateType }).equals(publicKey), true, `public of ${type} ${format}`);
      }
      assert.equal(crypto.createPublicKey(privateKey).equals(publicKey), true);
    }
  }
});

test("signatures", async () => {
  const data = Buffer.alloc(500000, "data");
  for (const [type, options, keys] of [["rsa", { modulusLength: 1024 }, [{}, { padding: 6 }, { padding: 6, saltLength: 20 }, { padding: 6, saltLength: -1 }]],
    ["ec", { namedCurve: "secp384r1" }, [{}, { dsaEncoding: "ieee-p1363" }]], ["ed25519", undefined, [{}]]]) {
    const { publicKey, privateKey } = crypto.generateKeyPairSync(type, options);
    for (const o of keys) {
      const algorithm = type === "ed25519" ? null : "sha256";
      const one = crypto.sign(algorithm, data, { key: privateKey, ...o });
      assert.equal(crypto.verify(algorithm, data, { key: publicKey, ...o }, one), true, type);
      assert.equal(crypto.verify(algorithm, data.subarray(1), { key: publicKey, ...o }, one), false, type);
      const two = await promisify(crypto.sign)(algorithm, data, { key: privateKey, ...o });
      assert.equal(await promisify(crypto.verify)(algorithm, data, { key: publicKey, ...o }, two), true, type);
      if (type === "ed25519") continue;
      const three = crypto.createSign("RSA-SHA256").update(data.subarray(0, 5)).update(data.subarray(5)).sign({ key: privateKey.export({ format: "pem", type: "pkcs8" }), ...o }, "hex");
      const verify = crypto.createVerify("sha256");
      verify.write(data);
      verify.end();
      assert.equal(verify.verify({ key: publicKey.export({ format: "pem", type: "spki" }), ...o }, three, "hex"), true, type);
    }
  }
});

test("what Web Crypto has made", async () => {
  const pair = await globalThis.crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, true, ["sign", "verify"]);
  const jwk = await globalThis.crypto.subtle.exportKey("jwk", pair.privateKey);
  const signature = crypto.sign("sha256", Buffer.from("abc"), { key: jwk, format: "jwk", dsaEncoding: "ieee-p1363" });
  assert.equal(await globalThis.crypto.subtle.verify({ name: "ECDSA", hash: "SHA-256" }, pair.publicKey, signature, Buffer.from("abc")), true);
});

test("encryption and shared secrets", () => {
  const { publicKey, privateKey } = crypto.generateKeyPairSync("rsa", { modulusLength: 1024 });
  for (const o of [{}, { oaepHash: "sha256", oaepLabel: Buffer.from("label") }]) {
    const secret = crypto.publicEncrypt({ key: publicKey, ...o }, Buffer.from("text"));
    assert.equal(crypto.privateDecrypt({ key: privateKey, ...o }, secret).toString(), "text");
  }
  assert.equal(thrown(() => crypto.privateDecrypt({ key: privateKey, padding: 1 }, Buffer.alloc(128))), "TypeError ERR_INVALID_ARG_VALUE");
  for (const [type, o] of [["x25519"], ["ec", { namedCurve: "P-256" }]]) {
    const a = crypto.generateKeyPairSync(type, o), b = crypto.generateKeyPairSync(type, o);
    assert.equal(crypto.diffieHellman({ privateKey: a.privateKey, publicKey: b.publicKey }).toString("hex"),
      crypto.diffieHellman({ privateKey: b.privateKey, publicKey: a.publicKey }).toString("hex"));
  }
  const a = crypto.createECDH("prime256v1"), b = crypto.createECDH("prime256v1");
  a.generateKeys();
  b.generateKeys();
  assert.equal(a.computeSecret(b.getPublicKey("hex", "compressed"), "hex", "hex"), b.computeSecret(a.getPublicKey(), null, "hex"));
  const c = crypto.createECDH("prime256v1");
  c.setPrivateKey(a.getPrivateKey());
  assert.equal(c.getPublicKey("hex"), a.getPublicKey("hex"));
});

test("bounds and wrong keys", () => {
  assert.equal(thrown(() => crypto.generateKeyPairSync("rsa", { modulusLength: 65536 })), "RangeError ERR_OUT_OF_RANGE");
  assert.equal(thrown(() => crypto.generateKeyPairSync("rsa", { modulusLength: 4096 })), "RangeError ERR_OUT_OF_RANGE");
  assert.equal(thrown(() => crypto.createPrivateKey("no key")), "Error ERR_OSSL_UNSUPPORTED");
  assert.equal(thrown(() => crypto.createPublicKey(Buffer.alloc(100000))), "Error ERR_OSSL_UNSUPPORTED");
  assert.equal(thrown(() => crypto.createPublicKey(crypto.createSecretKey(Buffer.alloc(5)))), "TypeError ERR_CRYPTO_INVALID_KEY_OBJECT_TYPE");
  assert.equal(crypto.createHmac("sha256", crypto.createSecretKey("key", "utf8")).update("a").digest("hex"), crypto.createHmac("sha256", "key").update("a").digest("hex"));
  assert.equal(thrown(() => new crypto.KeyObject("secret", {})), "TypeError ERR_INVALID_ARG_VALUE");
});

test("hostile options", () => {
  const trap = new Proxy({}, { get() { throw new RangeError("trap"); }, has() { throw new RangeError("trap"); } });
  for (const f of [() => crypto.createHash("sha256", trap), () => crypto.createPrivateKey(trap), () => crypto.scryptSync("a", "b", 5, trap),
    () => crypto.createCipheriv("aes-128-gcm", Buffer.alloc(16), Buffer.alloc(12), trap), () => crypto.generateKeyPairSync("rsa", trap), () => builtin("zlib").gzipSync("a", trap)]) {
    assert.equal(thrown(f), "RangeError undefined");
  }
  Object.prototype.outputLength = 3;
  Object.prototype.level = 99;
  try {
    assert.equal(thrown(() => crypto.createHash("sha256", {}).digest().length), "Error ERR_OSSL_EVP_NOT_XOF_OR_INVALID_LENGTH");
    assert.equal(crypto.createHash("sha256").update("a").digest().length, 32);
    assert.equal(builtin("zlib").gunzipSync(builtin("zlib").gzipSync("a")).toString(), "a");
  } finally {
    delete Object.prototype.outputLength;
    delete Object.prototype.level;
  }
  let n = 0;
  const late = { get modulusLength() { return n++ === 0 ? 1024 : 1e9; } };
  assert.equal(crypto.generateKeyPairSync("rsa", late).publicKey.asymmetricKeyDetails.modulusLength, 1024);
});
