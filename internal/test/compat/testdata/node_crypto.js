// node:crypto in Cloudflare's workerd and in Pinwheel. A case has the name of its list and its number in it.
import { Buffer } from "node:buffer";
import crypto from "node:crypto";
import { Readable } from "node:stream";
import { promisify } from "node:util";

// show makes JSON of a result. Messages of errors are each runtime's own.
function show(v) {
  if (v instanceof Error) return { error: v.name, code: v.code };
  if (v === undefined) return "undefined";
  if (typeof v === "function") return `function ${v.name}`;
  if (typeof v === "bigint") return String(v);
  if (v instanceof ArrayBuffer) return Buffer.from(v).toString("hex");
  if (Buffer.isBuffer(v)) return v.toString("hex");
  if (Array.isArray(v)) return v.map(show);
  return v;
}

const P = (s) => new Promise(s);
const hashes = ["md5", "sha1", "SHA1", "sha224", "sha256", "RSA-SHA256", "sha384", "sha512", "sha512-256", "ripemd160", "RSA-MD5", "nope", "", "sha3-256"];
const data = ["", "abc", "ü€😀", Buffer.from("00ff10", "hex"), new Uint8Array(1000).fill(7), new DataView(new ArrayBuffer(5)), new Uint16Array([1, 2, 3]), 5, null, undefined, {}, new ArrayBuffer(4)];
const encodings = ["hex", "base64", "base64url", "latin1", "binary", "utf8", "buffer", undefined, null];

const k16 = Buffer.alloc(16, 1), k24 = Buffer.alloc(24, 5), k32 = Buffer.alloc(32, 2), iv = Buffer.alloc(16, 3), iv12 = Buffer.alloc(12, 4);
const makings = (c) => [/192/.test(c) ? k24 : /256|chacha/.test(c) ? k32 : k16, /gcm|chacha/i.test(c) ? iv12 : /ecb/.test(c) ? null : iv, /chacha/.test(c) ? { authTagLength: 16 } : undefined];
const authenticates = (c) => /gcm|chacha/i.test(c);
function seal(c, text) {
  const x = crypto.createCipheriv(c, ...makings(c));
  if (authenticates(c)) x.setAAD(Buffer.from("more"));
  const out = Buffer.concat([x.update(text.slice(0, 5), "utf8"), x.update(text.slice(5), "utf8"), x.final()]);
  return [out, authenticates(c) ? x.getAuthTag() : Buffer.alloc(0)];
}
function open(c, [data, tag], step = 1000) {
  const x = crypto.createDecipheriv(c, ...makings(c));
  if (authenticates(c)) x.setAAD(Buffer.from("more")).setAuthTag(tag);
  const out = [];
  for (let at = 0; at < data.length; at += step) out.push(x.update(data.subarray(at, at + step)));
  return Buffer.concat([...out, x.final()]).toString("latin1");
}

const lists = {
  hash: hashes.flatMap((h) => [() => crypto.createHash(h).update("abc").digest("hex"), () => crypto.createHmac(h, "key").update("abc").digest("hex"), () => crypto.createHmac(h, Buffer.alloc(200, 1)).update("abc").update("def").digest("base64")]),
  "hash data": data.flatMap((d) => [() => crypto.createHash("sha256").update(d).digest("hex"), () => crypto.createHmac("sha256", "k").update(d).digest("hex"), () => crypto.createHmac("sha256", d).digest("hex")]),
  "hash encodings": encodings.flatMap((e) => [() => crypto.createHash("sha1").update("abc").digest(e), () => crypto.createHash("sha1").update("616263", e).digest("hex"), () => crypto.createHmac("sha1", "k").update("abc").digest(e)]),
  "hash more": [() => crypto.createHash(5), () => crypto.createHash(), () => crypto.createHmac("sha256"), () => { const h = crypto.createHash("md5"); h.digest(); return h.update("a"); }, () => { const h = crypto.createHash("md5"); h.digest(); return h.digest(); }, () => { const h = crypto.createHmac("md5", "a"); h.digest(); return h.update("b"); }, () => { const h = crypto.createHash("md5"); h.digest(); return h.copy(); }, () => { const h = crypto.createHash("sha256").update("a"); const c = h.copy(); return [h.update("b").digest("hex"), c.update("c").digest("hex")]; }, () => crypto.createHash("sha256", { outputLength: 5 }).digest("hex"), () => crypto.createHash("sha256", { outputLength: "x" }), () => crypto.createHash("sha256", 5).digest("hex"), async () => { const out = []; for await (const c of Readable.from(["a", "b"]).pipe(crypto.createHash("sha256"))) out.push(c); return Buffer.concat(out); }, () => { const h = crypto.createHash("sha256"); h.write("a"); h.end("b"); return P((ok) => h.on("readable", () => { const c = h.read(); if (c) ok(c); })); }, () => crypto.createHash("sha1") instanceof crypto.Hash, () => crypto.createHmac("sha1", "a") instanceof crypto.Hmac, () => crypto.hash("sha1", "abc"), () => crypto.hash("sha1", "abc", "base64"), () => crypto.hash("sha1", Buffer.from("abc"), "buffer"), () => crypto.hash("nope", "abc"), () => crypto.hash(5, "abc"), () => crypto.hash("sha1", 5)],
  random: [() => crypto.randomBytes(8).length, () => crypto.randomBytes(0), () => crypto.randomBytes(-1), () => crypto.randomBytes("a"), () => crypto.randomBytes(2 ** 31), () => P((ok) => crypto.randomBytes(4, (e, b) => ok([e, b.length]))), () => crypto.randomBytes(5, 5), async () => (await promisify(crypto.randomBytes)(7)).length, () => crypto.randomInt(1), () => crypto.randomInt(5, 6), () => crypto.randomInt(5, 3), () => crypto.randomInt("a"), () => crypto.randomInt(0), () => crypto.randomInt(0, 2 ** 48), () => crypto.randomInt(1.5), () => P((ok) => crypto.randomInt(3, 4, (e, n) => ok([e, n]))), () => crypto.randomFillSync(Buffer.alloc(4)).length, () => crypto.randomFillSync("a"), () => crypto.randomFillSync(Buffer.alloc(5), 6), () => crypto.randomFillSync(Buffer.alloc(5), 2, 9), () => crypto.randomFillSync(new ArrayBuffer(4)).byteLength, () => crypto.randomFillSync(new Uint32Array(4), 1, 2)[0], () => P((ok) => crypto.randomFill(Buffer.alloc(3), (e, b) => ok([e, b.length]))), () => P((ok) => crypto.randomFill(Buffer.alloc(3), 1, (e, b) => ok([e, b.length, b[0]]))), () => crypto.randomFill(Buffer.alloc(3)), () => crypto.randomUUID().length, () => crypto.randomUUID({ disableEntropyCache: true }).length, () => crypto.randomUUID({ disableEntropyCache: 5 }), () => crypto.randomUUID(5), () => crypto.webcrypto === globalThis.crypto, () => crypto.subtle === globalThis.crypto.subtle, () => crypto.getRandomValues(new Uint8Array(3)).length],
  "timingSafeEqual": [() => crypto.timingSafeEqual(Buffer.from("abc"), Buffer.from("abc")), () => crypto.timingSafeEqual(Buffer.from("abc"), Buffer.from("abd")), () => crypto.timingSafeEqual(Buffer.from("ab"), Buffer.from("abd")), () => crypto.timingSafeEqual("a", "b"), () => crypto.timingSafeEqual(Buffer.from("a"), "b"), () => crypto.timingSafeEqual(new Uint16Array([1]), new Uint8Array([1, 0]))],
  pbkdf2: [["password", "salt", 1, 20, "sha1"], ["password", "salt", 1000, 40, "sha256"], ["p", Buffer.from("s"), 3, 100, "sha512"], ["a", "b", 0, 5, "sha1"], ["a", "b", 1, 5, "nope"], ["a", "b", 1, -5, "sha1"], ["a", "b", 1, 5], [5, "b", 1, 5, "sha1"], ["a", 5, 1, 5, "sha1"], ["a", "b", "1", 5, "sha1"], ["a", "b", 1.5, 5, "sha1"], ["a", "b", 1, 0, "sha1"], [new Uint8Array(3), new DataView(new ArrayBuffer(3)), 2, 16, "sha384"]].flatMap((a) => [() => crypto.pbkdf2Sync(...a), () => promisify(crypto.pbkdf2)(...a)]),
  scrypt: [["password", "NaCl", 64, { N: 1024, r: 8, p: 16 }], ["", "", 64, { N: 16, r: 1, p: 1 }], ["a", "b", 32], ["a", "b", 5, { N: 3 }], ["a", "b", 5, { N: 2 ** 20 }], ["a", "b", 5, { N: 1 }], ["a", 5, 5], [5, "a", 5], ["a", "b", -1], ["a", "b", 0], ["a", "b", 16, { cost: 64, blockSize: 2, parallelization: 3 }], ["a", "b", 16, { N: 2 ** 15, maxmem: 2 ** 26 }], ["a", "b", 16, { N: 64, maxmem: 5 }], ["a", "b", 16, { N: "x" }]].flatMap((a) => [() => crypto.scryptSync(...a), () => P((ok, no) => crypto.scrypt(...a, (e, v) => (e ? no(e) : ok(v))))]),
  hkdf: [["sha256", "key", "salt", "info", 42], ["sha512", Buffer.alloc(10), "", "", 64], ["sha256", "a", "b", "c", 300 * 32], ["nope", "a", "b", "c", 3], ["sha256", "a", "b", Buffer.alloc(1025), 3], [5, "a", "b", "c", 3], ["sha256", 5, "b", "c", 3], ["sha256", "a", "b", 5, 3], ["sha256", "a", "b", "c", -1], ["sha256", "a", "b", "c", 5]].flatMap((a) => [() => crypto.hkdfSync(...a), () => P((ok, no) => crypto.hkdf(...a, (e, v) => (e ? no(e) : ok(v))))]),
  ciphers: ["aes-128-cbc", "aes-192-cbc", "AES-256-CBC", "aes256", "aes-128-ctr", "aes-256-ctr", "aes-128-gcm", "aes-256-gcm", "id-aes128-GCM", "aes-128-ecb", "chacha20-poly1305"].flatMap((c) => ["", "abc", "0123456789abcdef", "x".repeat(100)].flatMap((text) => [() => seal(c, text), () => open(c, seal(c, text)), () => open(c, seal(c, text), 7), () => { const r = seal(c, text); if (r[0].length) r[0][0] ^= 1; return open(c, r); }])),
  "odd hex": ["616", "61", "6", ""].flatMap((text) => [() => crypto.createHash("sha1").update(text, "hex").digest("hex"), () => crypto.createHash("sha1").update(text, "HEX").digest("hex"), () => crypto.createHmac("sha1", "k").update(text, "hex").digest("hex"), () => crypto.createCipheriv("aes-128-ctr", k16, iv).update(text, "hex", "hex"), () => crypto.createDecipheriv("aes-128-ctr", k16, iv).update(text, "hex", "hex"), () => typeof crypto.createSign("sha1").update(text, "hex"), () => typeof crypto.createVerify("sha1").update(text, "hex")]),
  "additional data in parts": ["aes-128-gcm", "chacha20-poly1305"].map((c) => () => { const x = crypto.createCipheriv(c, ...makings(c)); x.setAAD(Buffer.from("a")); x.setAAD(Buffer.from("b")); x.update("abc"); x.final(); return x.getAuthTag(); }),
  "lengths of tags": [1, 4, 8, 11, 12, 13, 14, 15, 16, 17].flatMap((n) => [() => typeof crypto.createDecipheriv("aes-128-gcm", k16, iv12).setAuthTag(Buffer.alloc(n)), () => typeof crypto.createDecipheriv("aes-128-gcm", k16, iv12, { authTagLength: n }).setAuthTag(Buffer.alloc(n)), () => typeof crypto.createDecipheriv("chacha20-poly1305", k32, iv12, { authTagLength: 16 }).setAuthTag(Buffer.alloc(n))]),
  "ciphers more": [() => crypto.createCipheriv("nope", k16, iv), () => crypto.createCipheriv("aes-128-cbc", k32, iv), () => crypto.createCipheriv("aes-128-cbc", k16, iv12), () => crypto.createCipheriv("aes-128-cbc", k16, null), () => crypto.createCipheriv("aes-128-cbc", k16), () => crypto.createCipheriv("aes-128-gcm", k16, Buffer.alloc(0)), () => { const x = crypto.createDecipheriv("aes-128-cbc", k16, iv); x.update("00", "hex"); return x.final(); }, () => { const x = crypto.createDecipheriv("aes-128-cbc", k16, iv); x.update(Buffer.alloc(16)); return x.final(); }, () => { const x = crypto.createCipheriv("aes-128-cbc", k16, iv); x.final(); return x.final(); }, () => { const x = crypto.createCipheriv("aes-128-cbc", k16, iv); x.final(); return x.update("a"); }, () => { const x = crypto.createCipheriv("aes-128-cbc", k16, iv); x.setAutoPadding(false); x.update("abc"); return x.final(); }, () => { const x = crypto.createCipheriv("aes-128-cbc", k16, iv); x.setAutoPadding(false); return [x.update("0123456789abcdef", "utf8", "hex"), x.final("hex")]; }, () => crypto.createCipheriv("aes-128-gcm", k16, iv12).getAuthTag(), () => { const x = crypto.createCipheriv("aes-128-gcm", k16, iv12); x.final(); return x.setAAD(Buffer.alloc(2)); }, () => { const x = crypto.createDecipheriv("aes-128-gcm", k16, iv12); x.update("abc"); return x.final(); }, () => { const x = crypto.createDecipheriv("aes-128-gcm", k16, iv12); x.setAuthTag(Buffer.alloc(16)); x.update("abc"); return x.final(); }, () => crypto.createDecipheriv("aes-128-gcm", k16, iv12).setAuthTag(Buffer.alloc(3)), () => { const x = crypto.createDecipheriv("aes-128-gcm", k16, iv12); x.setAuthTag(Buffer.alloc(16)); return x.setAuthTag(Buffer.alloc(16)); }, () => crypto.createCipheriv("aes-128-gcm", k16, iv12, { authTagLength: 5 }), () => { const x = crypto.createCipheriv("aes-128-gcm", k16, iv12, { authTagLength: 12 }); x.update("abc"); x.final(); return x.getAuthTag(); }, () => { const x = crypto.createCipheriv("aes-128-gcm", k16, iv); x.setAAD(Buffer.alloc(20)); x.update("abc"); x.final(); return x.getAuthTag(); }, () => crypto.createCipheriv("aes-128-cbc", k16, iv).getAuthTag(), () => crypto.createCipheriv("aes-128-cbc", k16, iv).setAAD(Buffer.alloc(1)), () => { const x = crypto.createCipheriv("aes-128-gcm", k16, iv12); x.update("abc"); return x.setAAD(Buffer.alloc(1)); }, () => crypto.createCipheriv("chacha20-poly1305", k32, iv), () => crypto.createCipheriv("aes-128-ecb", k16, iv), () => crypto.createCipheriv(5, k16, iv), () => crypto.createCipheriv("aes-128-cbc", 5, iv), () => crypto.createCipheriv("aes-128-cbc", k16, 5), () => crypto.createCipheriv("aes-128-cbc", k16, iv).update(5), () => { const x = crypto.createCipheriv("aes-128-cbc", k16, iv); return [x.update("a".repeat(33), "utf8", "base64"), x.final("base64")]; }, () => { const x = crypto.createCipheriv("aes-128-cbc", k16.toString("latin1"), iv.toString("latin1")); return [x.update("a"), x.final()]; }, () => crypto.getCipherInfo("aes-128-gcm").keyLength, () => crypto.getCipherInfo("nope"), () => crypto.getCipherInfo("aes-192-ctr"), () => crypto.getCipherInfo("aes-128-cbc", { keyLength: 5 }), async () => { const out = []; for await (const c of Readable.from(["abc", "def"]).pipe(crypto.createCipheriv("aes-128-cbc", k16, iv))) out.push(c); return Buffer.concat(out); }, () => P((ok) => { const d = crypto.createDecipheriv("aes-128-cbc", k16, iv); d.on("error", ok); d.end("abc"); d.resume(); }), () => crypto.createCipheriv("aes-128-cbc", k16, iv) instanceof crypto.Cipheriv],
};

export default {
  async fetch() {
    const all = {};
    for (const [name, calls] of Object.entries(lists)) {
      for (let i = 0; i < calls.length; i++) {
        try {
          all[`${name} ${i}`] = show(await Promise.race([calls[i](), P((ok) => setTimeout(ok, 3000, "no answer"))]));
        } catch (e) {
          all[`${name} ${i}`] = show(e);
        }
      }
    }
    return Response.json(all);
  },
};
