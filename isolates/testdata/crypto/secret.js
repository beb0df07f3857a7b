// crypto.subtle without public keys, by the vectors of those who made the algorithms.

const { subtle } = crypto;
const hex = (b) => [...new Uint8Array(b)].map((x) => x.toString(16).padStart(2, "0")).join("");
const un = (text) => new Uint8Array((text.replace(/\s/g, "").match(/../g) ?? []).map((x) => parseInt(x, 16)));
const text = (s) => new TextEncoder().encode(s);
const raw = (bytes, algorithm, usages, extractable = false) => subtle.importKey("raw", bytes, algorithm, extractable, usages);

test("digests: FIPS 180-4 and the empty message", async () => {
  const long = "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu";
  const cases = [
    ["SHA-1", "", "da39a3ee5e6b4b0d3255bfef95601890afd80709"],
    ["SHA-256", "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"],
    ["SHA-384", "", "38b060a751ac96384cd9327eb1b1e36a21fdb71114be07434c0cc7bf63f6e1da274edebfe76f65fbd51ad2f14898b95b"],
    ["SHA-512", "", "cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e"],
    ["SHA-1", "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", "84983e441c3bd26ebaae4aa1f95129e5e54670f1"],
    ["SHA-256", "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"],
    ["SHA-384", long, "09330c33f71147e83d192fc782cd1b4753111b173b3b05d22fa08086e3b0f712fcc7c71a557e2db966c3e9fa91746039"],
    ["SHA-512", long, "8e959b75dae313da8cf4f72814fc143f8f7779c6eb9f7fa17299aeadb6889018501d289e4900f7e4331b99dec4b5433ac7d329eeb6dd26545e96e55b874be909"],
    ["SHA3-256", "", "a7ffc6f8bf1ed76651c14756a061d662f580ff4de43b49fa82d80a4b80f8434a"],
    ["SHA3-256", "abc", "3a985da74fe225b2045c172d6bd390bd855f086e3e9d525b46bfe24511431532"],
    ["SHA3-384", "", "0c63a75b845e4f7d01107d852e4c2485c51a50aaaa94fc61995e71bbee983a2ac3713831264adb47fb6bd1e058d5f004"],
    ["SHA3-384", "abc", "ec01498288516fc926459f58e2c6ad8df9b473cb0fc08c2596da7cf0e49be4b298d88cea927ac7f539f1edf228376d25"],
    ["SHA3-512", "", "a69f73cca23a9ac5c8b567dc185a756e97c982164fe25859e0d1dcc1475c80a615b2123af1f5f94c11e3e9402c3ac558f500199d95b6d3e301758586281dcd26"],
    ["SHA3-512", "abc", "b751850b1a57168a5693cd924b6b096e08f621827444f70d884f5d0240d2712e10e116e9192af3c91a7ec57647e3934057340b4cf408d5a56592f8274eec53f0"],
  ];
  for (const [name, message, digest] of cases) assert.equal(hex(await subtle.digest(name, text(message))), digest, name);
  // Large enough to be done on another thread.
  const million = new Uint8Array(1e6).fill(97);
  assert.equal(hex(await subtle.digest("SHA-1", million)), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
  assert.equal(hex(await subtle.digest("SHA-256", million)), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  assert.equal(hex(await subtle.digest({ name: "sha3-256" }, million)), "5c8875ae474a3634ba4fd55ec85bffd661f32aca75c6d699d0cdcb6c115891c1");
});

test("SHA-3 is a digest and no hash of other algorithms", async () => {
  const key = { name: "HMAC", hash: "SHA3-256" };
  await assert.rejects(subtle.generateKey(key, false, ["sign"]), "NotSupportedError");
  await assert.rejects(subtle.generateKey("SHA3-256", false, ["sign"]), "NotSupportedError");
});

test("digest: the data is copied when the algorithm is normalized, not later and not before", async () => {
  const expected = hex(await subtle.digest("SHA-256", text("abc")));
  const before = text("xbc");
  assert.equal(hex(await subtle.digest({ get name() { before[0] = 97; return "SHA-256"; } }, before)), expected);
  const after = text("abc");
  const promise = subtle.digest("SHA-256", after);
  after[0] = 0;
  assert.equal(hex(await promise), expected);
  const large = new Uint8Array(300000);
  const zeros = hex(await subtle.digest("SHA-256", new Uint8Array(300000)));
  const later = subtle.digest("SHA-256", large);
  large.fill(1);
  assert.equal(hex(await later), zeros);
  const gone = text("abc");
  const empty = await subtle.digest({ get name() { gone.buffer.transfer(); return "SHA-256"; } }, gone);
  assert.equal(hex(empty), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
});

test("HMAC: RFC 4231", async () => {
  const cases = [
    ["0b".repeat(20), "4869205468657265", {
      "SHA-256": "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
      "SHA-384": "afd03944d84895626b0825f4ab46907f15f9dadbe4101ec682aa034c7cebc59cfaea9ea9076ede7f4af152e8b2fa9cb6",
      "SHA-512": "87aa7cdea5ef619d4ff0b4241a1d6cb02379f4e2ce4ec2787ad0b30545e17cdedaa833b7d6b8a702038b274eaea3f4e4be9d914eeb61f1702e696c203a126854",
    }],
    ["aa".repeat(20), "dd".repeat(50), {
      "SHA-256": "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe",
      "SHA-384": "88062608d3e6ad8a0aa2ace014c8a86f0aa635d947ac9febe83ef4e55966144b2a5ab39dc13814b94e3ab6e101a34f27",
      "SHA-512": "fa73b0089d56a284efb0f0756c890be9b1b5dbdd8ee81a3655f83e33b2279d39bf3e848279a722c806b485a47e67c807b946a337bee8942674278859e13292fb",
    }],
    ["aa".repeat(131), "54657374205573696e67204c6172676572205468616e20426c6f636b2d53697a65204b6579202d2048617368204b6579204669727374", {
      "SHA-256": "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
      "SHA-384": "4ece084485813e9088d2c63a041bc5b44f9ef1012a2b588f3cd11f05033ac4c60c2ef6ab4030fe8296248df163f44952",
      "SHA-512": "80b24263c7c1a3ebb71493c1dd7be8b49b46d1f41b4aeec1121b013783f8f3526b56d037e05f2598bd0fd2215d6a1e5295e64f73f63f0aec8b915a985d786598",
    }],
  ];
  for (const [k, data, macs] of cases) {
    for (const [hash, mac] of Object.entries(macs)) {
      const key = await raw(un(k), { name: "HMAC", hash }, ["sign", "verify"]);
      assert.equal(hex(await subtle.sign("HMAC", key, un(data))), mac, hash);
      assert.equal(await subtle.verify("HMAC", key, un(mac), un(data)), true);
      assert.equal(await subtle.verify("HMAC", key, un(mac), un(data + "00")), false);
    }
  }
  const sha1 = await raw(un("0b".repeat(20)), { name: "HMAC", hash: "SHA-1" }, ["sign"]);
  assert.equal(hex(await subtle.sign("HMAC", sha1, text("Hi There"))), "b617318655057264e28bc0b6fb378c8ef146be00", "RFC 2202");
});

test("HMAC: lengths that are no whole bytes", async () => {
  const key = await raw(un("ffff"), { name: "HMAC", hash: "SHA-256", length: 12 }, ["sign"], true);
  assert.equal(key.algorithm.length, 12);
  assert.equal(hex(await subtle.exportKey("raw", key)), "fff0");
  for (const length of [17, 8, 0, 1]) await assert.rejects(raw(un("ffff"), { name: "HMAC", hash: "SHA-256", length }, ["sign"]), "DataError", length);
  const made = await subtle.generateKey({ name: "HMAC", hash: "SHA-1", length: 9 }, true, ["sign"]);
  const bytes = new Uint8Array(await subtle.exportKey("raw", made));
  assert.deepEqual([bytes.length, bytes[1] & 0x7f], [2, 0]);
  assert.deepEqual([(await subtle.generateKey({ name: "HMAC", hash: "SHA-384" }, true, ["sign"])).algorithm.length], [1024]);
  await assert.rejects(subtle.generateKey({ name: "HMAC", hash: "SHA-1", length: 0 }, true, ["sign"]), "OperationError");
});

// SP 800-38A, appendix F: the key by its size, one message for all.
const keys = {
  128: "2b7e151628aed2a6abf7158809cf4f3c",
  192: "8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b",
  256: "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4",
};
const message = "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e5130c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710";

test("AES-CBC: SP 800-38A, F.2", async () => {
  const iv = un("000102030405060708090a0b0c0d0e0f");
  const expected = {
    128: "7649abac8119b246cee98e9b12e9197d5086cb9b507219ee95db113a917678b273bed6b8e3c1743b7116e69e222295163ff1caa1681fac09120eca307586e1a7",
    192: "4f021db243bc633d7178183a9fa071e8b4d9ada9ad7dedf4e5e738763f69145a571b242012fb7ae07fa9baac3df102e008b0e27988598881d920a9e64f5615cd",
    256: "f58c4c04d6e5f1ba779eabfb5f7bfbd69cfc4e967edb808d679f777bc6702c7d39f23369a9d9bacfa530e26304231461b2eb05e2c39be9fcda6c19078c6a9d1b",
  };
  for (const [bits, ciphertext] of Object.entries(expected)) {
    const key = await raw(un(keys[bits]), "AES-CBC", ["encrypt", "decrypt"]);
    const out = await subtle.encrypt({ name: "AES-CBC", iv }, key, un(message));
    assert.equal(out.byteLength, 80, "a block of padding");
    assert.equal(hex(out).slice(0, 128), ciphertext, bits);
    assert.equal(hex(await subtle.decrypt({ name: "aes-cbc", iv }, key, out)), message);
  }
});

test("AES-CBC: padding and lengths", async () => {
  const key = await raw(un(keys[128]), "AES-CBC", ["encrypt", "decrypt"]);
  const iv = new Uint8Array(16);
  const alg = { name: "AES-CBC", iv };
  for (let n = 0; n <= 33; n++) {
    const out = await subtle.encrypt(alg, key, new Uint8Array(n).fill(7));
    assert.equal(out.byteLength, n - (n % 16) + 16, n);
    assert.equal((await subtle.decrypt(alg, key, out)).byteLength, n);
  }
  const good = new Uint8Array(await subtle.encrypt(alg, key, new Uint8Array(20)));
  for (const bad of [good.subarray(0, 31), new Uint8Array(0), good.subarray(0, 16), new Uint8Array(32)]) await assert.rejects(subtle.decrypt(alg, key, bad), "OperationError");
  for (const n of [0, 15, 17]) {
    await assert.rejects(subtle.encrypt({ name: "AES-CBC", iv: new Uint8Array(n) }, key, good), "OperationError");
    await assert.rejects(subtle.decrypt({ name: "AES-CBC", iv: new Uint8Array(n) }, key, good), "OperationError");
  }
  await assert.rejects(subtle.encrypt({ name: "AES-CBC" }, key, good), TypeError);
  await assert.rejects(subtle.encrypt("AES-CBC", key, good), TypeError);
});

test("AES-CTR: SP 800-38A, F.5", async () => {
  const counter = un("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff");
  const expected = {
    128: "874d6191b620e3261bef6864990db6ce9806f66b7970fdff8617187bb9fffdff5ae4df3edbd5d35e5b4f09020db03eab1e031dda2fbe03d1792170a0f3009cee",
    192: "1abc932417521ca24f2b0459fe7e6e0b090339ec0aa6faefd5ccc2c6f4ce8e941e36b26bd1ebc670d1bd1d665620abf74f78a7f6d29809585a97daec58c6b050",
    256: "601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c52b0930daa23de94ce87017ba2d84988ddfc9c58db67aada613c2dd08457941a6",
  };
  for (const [bits, ciphertext] of Object.entries(expected)) {
    const key = await raw(un(keys[bits]), "AES-CTR", ["encrypt", "decrypt"]);
    for (const length of [128, 64, 3]) {
      const alg = { name: "AES-CTR", counter, length };
      const out = await subtle.encrypt(alg, key, un(message));
      if (length !== 3) assert.equal(hex(out), ciphertext, `${bits} ${length}`);
      else assert.equal(hex(out).slice(0, 32), ciphertext.slice(0, 32));
      assert.equal(hex(await subtle.decrypt(alg, key, out)), message);
    }
  }
});

test("AES-CTR: the counter wraps within its length", async () => {
  const key = await raw(un(keys[128]), "AES-CTR", ["encrypt"]);
  const stream = async (counter, length, blocks) => hex(await subtle.encrypt({ name: "AES-CTR", counter: un(counter), length }, key, new Uint8Array(16 * blocks)));
  const block = (counter) => stream(counter, 128, 1);
  const top = "f0f1f2f3f4f5f6f7f8f9fafbfcfdfe";
  assert.equal(await stream(top + "ff", 8, 2), (await block(top + "ff")) + (await block(top + "00")));
  assert.equal(await stream(top + "ff", 4, 2), (await block(top + "ff")) + (await block(top + "f0")));
  assert.equal(await stream(top + "fe", 1, 2), (await block(top + "fe")) + (await block(top + "ff")));
  assert.equal(await stream(top + "fd", 1, 2), (await block(top + "fd")) + (await block(top + "fc")));
  assert.equal(await stream("ff".repeat(16), 128, 3), (await block("ff".repeat(16))) + (await block("00".repeat(16))) + (await block("00".repeat(15) + "01")));
  assert.equal(await stream("00".repeat(7) + "ff".repeat(9), 72, 2), (await block("00".repeat(7) + "ff".repeat(9))) + (await block("00".repeat(16))));
  assert.equal(await stream("00".repeat(7) + "ff".repeat(9), 73, 2), (await block("00".repeat(7) + "ff".repeat(9))) + (await block("00".repeat(6) + "01" + "00".repeat(9))));
  await assert.rejects(stream(top + "ff", 1, 3), "OperationError", "more blocks than the counter has values");
  await assert.rejects(stream(top + "ff", 0, 1), "OperationError");
  await assert.rejects(stream(top + "ff", 129, 1), "OperationError");
  await assert.rejects(stream(top, 64, 1), "OperationError");
  await assert.rejects(stream(top + "ff", 256, 1), TypeError, "not an octet");
  await assert.rejects(stream(top + "ff", -1, 1), TypeError);
  await assert.rejects(subtle.encrypt({ name: "AES-CTR", counter: un(top + "ff") }, key, new Uint8Array(1)), TypeError);
});

test("AES-GCM: the vectors of the specification of GCM", async () => {
  const plain = "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39";
  const aad = "feedfacedeadbeeffeedfacedeadbeefabaddad2";
  const cases = [
    ["00".repeat(16), "00".repeat(12), "", "", "", "58e2fccefa7e3061367f1d57a4e7455a"],
    ["00".repeat(16), "00".repeat(12), "00".repeat(16), "", "0388dace60b6a392f328c2b971b2fe78", "ab6e47d42cec13bdf53a67b21257bddf"],
    ["feffe9928665731c6d6a8f9467308308", "cafebabefacedbaddecaf888", plain, aad,
      "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091", "5bc94fbc3221a5db94fae95ae7121a47"],
    ["feffe9928665731c6d6a8f9467308308", "cafebabefacedbad", plain, aad,
      "61353b4c2806934a777ff51fa22a4755699b2a714fcdc6f83766e5f97b6c742373806900e49f24b22b097544d4896b424989b5e1ebac0f07c23f4598", "3612d2e79e3b0785561be14aaca2fccb"],
    ["feffe9928665731c6d6a8f9467308308feffe9928665731c", "cafebabefacedbaddecaf888", plain, aad,
      "3980ca0b3c00e841eb06fac4872a2757859e1ceaa6efd984628593b40ca1e19c7d773d00c144c525ac619d18c84a3f4718e2448b2fe324d9ccda2710", "2519498e80f1478f37ba55bd6d27618c"],
    ["feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308", "cafebabefacedbaddecaf888", plain, aad,
      "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662", "76fc6ece0f4e1768cddf8853bb2d551b"],
  ];
  for (const [k, iv, data, additional, ciphertext, tag] of cases) {
    const key = await raw(un(k), "AES-GCM", ["encrypt", "decrypt"]);
    const alg = { name: "AES-GCM", iv: un(iv), additionalData: un(additional) };
    const out = await subtle.encrypt(alg, key, un(data));
    assert.equal(hex(out), ciphertext + tag);
    assert.equal(hex(await subtle.decrypt(alg, key, out)), data);
    for (const tagLength of [32, 64, 96, 104, 112, 120, 128]) {
      const short = await subtle.encrypt({ ...alg, tagLength }, key, un(data));
      assert.equal(hex(short), ciphertext + tag.slice(0, tagLength / 4), tagLength);
      assert.equal(hex(await subtle.decrypt({ ...alg, tagLength }, key, short)), data);
      const wrong = new Uint8Array(short);
      wrong[wrong.length - 1] ^= 1;
      await assert.rejects(subtle.decrypt({ ...alg, tagLength }, key, wrong), "OperationError", tagLength);
    }
  }
});

test("AES-GCM: refusals", async () => {
  const key = await raw(un(keys[256]), "AES-GCM", ["encrypt", "decrypt"]);
  const iv = new Uint8Array(12);
  const data = text("hello");
  for (const tagLength of [0, 8, 16, 31, 33, 127, 129, 255]) await assert.rejects(subtle.encrypt({ name: "AES-GCM", iv, tagLength }, key, data), "OperationError", tagLength);
  for (const tagLength of [256, -1, Infinity, NaN]) await assert.rejects(subtle.encrypt({ name: "AES-GCM", iv, tagLength }, key, data), TypeError, tagLength);
  const sealed = await subtle.encrypt({ name: "AES-GCM", iv, additionalData: data }, key, data);
  await assert.rejects(subtle.decrypt({ name: "AES-GCM", iv }, key, sealed), "OperationError", "without the additional data");
  await assert.rejects(subtle.decrypt({ name: "AES-GCM", iv: new Uint8Array(12).fill(1), additionalData: data }, key, sealed), "OperationError");
  await assert.rejects(subtle.decrypt({ name: "AES-GCM", iv }, key, new Uint8Array(15)), "OperationError", "shorter than a tag");
  await assert.rejects(subtle.encrypt({ name: "AES-GCM", iv: new Uint8Array(0) }, key, data), "OperationError", "an empty iv");
  await assert.rejects(subtle.encrypt({ name: "AES-GCM" }, key, data), TypeError);
  await assert.rejects(subtle.encrypt({ name: "AES-GCM", iv, additionalData: null }, key, data), TypeError);
  await assert.rejects(subtle.encrypt({ name: "AES-GCM", iv, additionalData: "x" }, key, data), TypeError);
  const large = crypto.getRandomValues(new Uint8Array(65536));
  const three = new Uint8Array(300000);
  three.set(large);
  assert.deepEqual(new Uint8Array(await subtle.decrypt({ name: "AES-GCM", iv }, key, await subtle.encrypt({ name: "AES-GCM", iv }, key, three))), three, "on another thread");
});

test("AES-KW: RFC 3394, 4", async () => {
  const cases = [
    [128, "00112233445566778899aabbccddeeff", "1fa68b0a8112b447aef34bd8fb5a7b829d3e862371d2cfe5"],
    [192, "00112233445566778899aabbccddeeff", "96778b25ae6ca435f92b5b97c050aed2468ab8a17ad84e5d"],
    [256, "00112233445566778899aabbccddeeff", "64e8c3f9ce0f5ba263e9777905818a2a93c8191e7d6e8ae7"],
    [192, "00112233445566778899aabbccddeeff0001020304050607", "031d33264e15d33268f24ec260743edce1c6c7ddee725a936ba814915c6762d2"],
    [256, "00112233445566778899aabbccddeeff0001020304050607", "a8f9bc1612c68b3ff6e6f4fbe30e71e4769c8b80a32cb8958cd5d17d6b254da1"],
    [256, "00112233445566778899aabbccddeeff000102030405060708090a0b0c0d0e0f", "28c9f404c4b810f4cbccb35cfb87f8263f5786e2d80ed326cbc7f0e71a99f43bfb988b9b7a02dd21"],
  ];
  const all = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
  for (const [bits, data, wrapped] of cases) {
    const kek = await raw(un(all.slice(0, bits / 4)), "AES-KW", ["wrapKey", "unwrapKey"]);
    const key = await raw(un(data), { name: "HMAC", hash: "SHA-256" }, ["sign"], true);
    assert.equal(hex(await subtle.wrapKey("raw", key, kek, "AES-KW")), wrapped);
    const back = await subtle.unwrapKey("raw", un(wrapped), kek, "aes-kw", { name: "HMAC", hash: "SHA-256" }, true, ["sign"]);
    assert.equal(hex(await subtle.exportKey("raw", back)), data);
    const wrong = un(wrapped);
    wrong[3] ^= 4;
    await assert.rejects(subtle.unwrapKey("raw", wrong, kek, "AES-KW", { name: "HMAC", hash: "SHA-256" }, true, ["sign"]), "OperationError");
  }
  const kek = await raw(un(all), "AES-KW", ["wrapKey", "unwrapKey"]);
  const odd = await raw(un("001122"), { name: "HMAC", hash: "SHA-256" }, ["sign"], true);
  await assert.rejects(subtle.wrapKey("raw", odd, kek, "AES-KW"), "OperationError");
  await assert.rejects(subtle.unwrapKey("raw", new Uint8Array(16), kek, "AES-KW", "AES-CBC", true, ["encrypt"]), "OperationError");
  await assert.rejects(subtle.encrypt("AES-KW", kek, new Uint8Array(16)), "NotSupportedError");
});

test("HKDF: RFC 5869", async () => {
  const cases = [
    ["SHA-256", "0b".repeat(22), "000102030405060708090a0b0c", "f0f1f2f3f4f5f6f7f8f9", "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"],
    ["SHA-256", "0b".repeat(22), "", "", "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8"],
    ["SHA-1", "0b".repeat(11), "000102030405060708090a0b0c", "f0f1f2f3f4f5f6f7f8f9", "085a01ea1b10f36933068b56efa5ad81a4f14b822f5b091568a9cdd4f155fda2c22e422478d305f3f896"],
    ["SHA-1", "0b".repeat(22), "", "", "0ac1af7002b3d761d1e55298da9d0506b9ae52057220a306e07b6b87e8df21d0ea00033de03984d34918"],
    ["SHA-1", "0c".repeat(22), "", "", "2c91117204d745f3500d636a62f64f0ab3bae548aa53d423b0d1f27ebba6f5e5673a081d70cce7acfc48"],
  ];
  for (const [hash, ikm, salt, info, okm] of cases) {
    const key = await raw(un(ikm), "HKDF", ["deriveBits"]);
    assert.equal(hex(await subtle.deriveBits({ name: "HKDF", hash, salt: un(salt), info: un(info) }, key, okm.length * 4)), okm);
  }
});

test("HKDF: lengths and refusals", async () => {
  const key = await raw(text("secret"), "HKDF", ["deriveBits", "deriveKey"]);
  const alg = { name: "HKDF", hash: "SHA-256", salt: un(""), info: un("") };
  assert.equal((await subtle.deriveBits(alg, key, 255 * 256)).byteLength, 8160);
  assert.equal((await subtle.deriveBits(alg, key, 0)).byteLength, 0);
  await assert.rejects(subtle.deriveBits(alg, key, 255 * 256 + 8), "OperationError");
  for (const length of [null, undefined, 7, 129]) await assert.rejects(subtle.deriveBits(alg, key, length), "OperationError", String(length));
  await assert.rejects(subtle.deriveBits({ name: "HKDF", hash: "SHA-256", salt: un("") }, key, 8), TypeError);
  await assert.rejects(subtle.deriveBits({ name: "HKDF", hash: "SHA-256", info: un("") }, key, 8), TypeError);
  await assert.rejects(subtle.deriveBits({ name: "HKDF", salt: un(""), info: un("") }, key, 8), TypeError);
  await assert.rejects(subtle.deriveBits({ ...alg, hash: "MD5" }, key, 8), "NotSupportedError");
  await assert.rejects(raw(text("x"), "HKDF", ["deriveBits"], true), "SyntaxError");
  await assert.rejects(raw(text("x"), "HKDF", ["sign"]), "SyntaxError");
  await assert.rejects(raw(text("x"), "HKDF", []), "SyntaxError");
  await assert.rejects(subtle.importKey("jwk", { kty: "oct", k: "AA" }, "HKDF", false, ["deriveBits"]), "NotSupportedError");
  await assert.rejects(subtle.exportKey("raw", key), "NotSupportedError");
  await assert.rejects(subtle.generateKey("HKDF", false, ["deriveBits"]), "NotSupportedError");
  assert.deepEqual([key.type, key.extractable, key.algorithm, key.usages], ["secret", false, { name: "HKDF" }, ["deriveKey", "deriveBits"]]);
});

test("PBKDF2: RFC 6070 and 7914", async () => {
  const cases = [
    ["SHA-1", "password", "salt", 1, "0c60c80f961f0e71f3a9b524af6012062fe037a6"],
    ["SHA-1", "password", "salt", 2, "ea6c014dc72d6f8ccd1ed92ace1d41f0d8de8957"],
    ["SHA-1", "password", "salt", 4096, "4b007901b765489abead49d926f721d065a429c1"],
    ["SHA-1", "passwordPASSWORDpassword", "saltSALTsaltSALTsaltSALTsaltSALTsalt", 4096, "3d2eec4fe41c849b80c8d83662c0e44a8b291a964cf2f07038"],
    ["SHA-1", "pass\0word", "sa\0lt", 4096, "56fa6aa75548099dcc37d7f03425e0c3"],
    ["SHA-256", "passwd", "salt", 1, "55ac046e56e3089fec1691c22544b605f94185216dde0465e68b9d57c20dacbc49ca9cccf179b645991664b39d77ef317c71b845b1e30bd509112041d3a19783"],
  ];
  for (const [hash, password, salt, iterations, expected] of cases) {
    const key = await raw(text(password), "PBKDF2", ["deriveBits"]);
    assert.equal(hex(await subtle.deriveBits({ name: "PBKDF2", hash, salt: text(salt), iterations }, key, expected.length * 4)), expected, `${hash} ${iterations}`);
  }
});

test("PBKDF2: lengths and refusals", async () => {
  const key = await raw(text("secret"), "PBKDF2", ["deriveBits"]);
  const alg = { name: "PBKDF2", hash: "SHA-256", salt: un("00"), iterations: 3 };
  assert.equal((await subtle.deriveBits(alg, key, 0)).byteLength, 0);
  assert.equal((await subtle.deriveBits(alg, key, 8)).byteLength, 1);
  for (const length of [null, 1, 63]) await assert.rejects(subtle.deriveBits(alg, key, length), "OperationError");
  await assert.rejects(subtle.deriveBits({ ...alg, iterations: 0 }, key, 8), "OperationError");
  await assert.rejects(subtle.deriveBits({ ...alg, iterations: 0 }, key, 0), "OperationError");
  for (const iterations of [-1, 2 ** 32, NaN, undefined]) await assert.rejects(subtle.deriveBits({ ...alg, iterations }, key, 8), TypeError);
  await assert.rejects(subtle.deriveBits({ ...alg, salt: "salt" }, key, 8), TypeError);
  const empty = await raw(un(""), "PBKDF2", ["deriveBits"]);
  assert.equal(hex(await subtle.deriveBits({ ...alg, iterations: 1, salt: un("") }, empty, 128)).length, 32);
});
