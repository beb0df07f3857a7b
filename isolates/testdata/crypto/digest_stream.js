// crypto.DigestStream and MD5 of Cloudflare.

const hex = (buffer) => [...new Uint8Array(buffer)].map((b) => b.toString(16).padStart(2, "0")).join("");
const digest = async (name, ...chunks) => {
  const s = new crypto.DigestStream(name);
  const w = s.getWriter();
  for (const chunk of chunks) await w.write(chunk);
  await w.close();
  return hex(await s.digest);
};

test("it hashes what is written", async () => {
  const s = new crypto.DigestStream("SHA-256");
  assert.ok(s instanceof WritableStream);
  assert.equal(Object.prototype.toString.call(s), "[object DigestStream]");
  assert.ok(s.digest instanceof Promise && s.digest === s.digest);
  const w = s.getWriter();
  await w.write(new TextEncoder().encode("a"));
  await w.write("b");
  assert.equal(s.bytesWritten, 2n);
  await w.close();
  assert.equal(hex(await s.digest), "fb8e20fc2e4c3f248c60c39bd652f3c1347298bb977b8b4d5903b85055620603");
  assert.ok((await s.digest) instanceof ArrayBuffer);
  assert.ok(!("DigestStream" in globalThis));
});

test("every algorithm gives what digest() gives, however the bytes are cut", async () => {
  const data = crypto.getRandomValues(new Uint8Array(5000));
  const cuts = [data.subarray(0, 1), new Uint8Array(0), data.subarray(1, 65), data.subarray(65, 66), data.subarray(66)];
  for (const name of ["MD5", "md5", { name: "MD5" }, "SHA-1", "SHA-256", "sha-256", "SHA-384", "SHA-512"]) {
    const want = hex(await crypto.subtle.digest(name, data));
    assert.equal(await digest(name, data), want);
    assert.equal(await digest(name, ...cuts), want);
  }
  assert.equal(await digest("MD5"), "d41d8cd98f00b204e9800998ecf8427e");
  assert.equal(await digest("MD5", "a"), "0cc175b9c0f1b6a831c399e269772661");
  assert.equal(await digest("SHA-1", new Uint16Array([1, 2]), new Uint8Array([1]).buffer), "c88916d7a3ab5d0b69dad333041f8c6c32eb7008");
});

test("long chunks", async () => {
  const data = new Uint8Array(3 * 1048576 + 5).fill(7);
  assert.equal(await digest("SHA-512", data), hex(await crypto.subtle.digest("SHA-512", data)));
});

test("a stream can be piped into it", async () => {
  const s = new crypto.DigestStream("SHA-1");
  await new Response("hello").body.pipeTo(s);
  assert.equal(hex(await s.digest), "aaf4c61ddcc5e8a2dabede0f3b482cd9aea9434d");
});

test("what is no algorithm", () => {
  for (const name of ["SHA3-256", "SHA-224", "HMAC", "nonesuch", 3]) assert.throws(() => new crypto.DigestStream(name), "NotSupportedError");
  assert.throws(() => new crypto.DigestStream(), TypeError);
  assert.throws(() => crypto.DigestStream("MD5"), TypeError);
  assert.throws(() => crypto.DigestStream.prototype.digest, TypeError);
});

test("MD5 digests and does nothing else", async () => {
  await assert.rejects(crypto.subtle.importKey("raw", new Uint8Array(8), { name: "HMAC", hash: "MD5" }, true, ["sign"]), "NotSupportedError");
  await assert.rejects(crypto.subtle.sign("MD5", {}, new Uint8Array(8)), TypeError);
});

test("abort, and chunks that are none", async () => {
  const reason = new Error("boo");
  const a = new crypto.DigestStream("SHA-1");
  await a.abort(reason);
  await assert.rejects(a.digest, { value: reason });
  for (const chunk of [3, {}, null, undefined]) {
    const s = new crypto.DigestStream("SHA-1");
    const w = s.getWriter();
    w.closed.catch(() => {});
    const error = await w.write(chunk).catch((e) => e);
    assert.ok(error instanceof TypeError);
    await assert.rejects(s.digest, { value: error });
  }
});

test("what a handler has replaced is not called", async () => {
  const fail = { value() { throw new Error("called"); } };
  const got = await patched(Promise.prototype, "then", fail, () => {
    const s = new crypto.DigestStream("MD5");
    const w = s.getWriter();
    w.write("a");
    w.close();
    return s;
  });
  assert.equal(hex(await got.digest), "0cc175b9c0f1b6a831c399e269772661");
});
