// Packages that import Node's modules, as their authors ship them.
import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import zlib from "node:zlib";
import bcrypt from "bcryptjs";
import signature from "cookie-signature";
import { parse as parseCSV } from "csv-parse";
import { stringify } from "csv-stringify";
import jwt from "jsonwebtoken";
import * as pako from "pako";
import tar from "tar-stream";
import { v5 as nameUUID } from "uuid";
import { Parser, parseStringPromise, Builder } from "xml2js";
import { worker } from "./answers.mjs";

// These keys were made for this test, and are used nowhere else.
const rsa = ["-----BEGIN PRIVATE KEY-----\nMIICdwIBADANBgkqhkiG9w0BAQEFAASCAmEwggJdAgEAAoGBALkXVi2YsYLVvr0x\n9Ld/eTev9hCUgVUQ3XXkZX6fblK523mzMrfGMc3womWVFrOAbItWg0S1jzRtIizo\nmFltn9Zrl8CnO2uRHmoGwka7aCF7zIZHo5YcjjOZdwdMXwbPu9uJ8nF12Yb61gSY\n7z2x+ACuDpJF5Pj3gor9cv9gaMTNAgMBAAECgYBkCW3ldPq0CQxvOznVl4sPgwYO\nTgVc0aGwX0JP3qGFCrjJnQXTd8ZhVSagmqTLXaTM5nRKRYrhvf5ToV7+LpbNJIWj\nsXZ0/Kn44SaruqlAvg4+alwJokH95L38KBSp+f1AgGxPRupMhoAuKgoFs69Yxl6Z\nEhr/IvPOqeyomQozrQJBAORabvXuUEj8lB7Hg74zzS8Z6nEO0MkKmWuhlQVpoM8f\nQ5MM11M9VOEE6CW141BzpjlQC8w0y0MIHFDAWzkeLH8CQQDPgApbnq+HP7lV51BR\nSZxlvZVsVfcVm3dEAD2Cg2TP+E/3yYan5mcohPdX4bHC/8kz6YZcoj4Rbft8rU28\n/FizAkBJ9zDx4BuJSKcBwUZfGZBgrVhO/qmKNTC0uEX41toLvOi6fPJSOA+CQ4Ce\nlmfm607wSYlIv+EG+V2Smnvx6GApAkEAuQ/HLSOABS4OS9E7zuPJ+ut04uRgtAKu\nAhX8xfQN63XZTHOOBxz0kCzWtKhz9ChQ+F2kGeYRWVYv32hpVs3xBQJBAMJ/6RF6\nJnBpUvUTnqrZyERjmdFtu+VDZhuliwerNKOm4MPdjswT5L5HkN1LmXr2+iYYPlMa\nM8Y4TT0cmQNvDOA=\n-----END PRIVATE KEY-----\n", "-----BEGIN PUBLIC KEY-----\nMIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQC5F1YtmLGC1b69MfS3f3k3r/YQ\nlIFVEN115GV+n25Sudt5szK3xjHN8KJllRazgGyLVoNEtY80bSIs6JhZbZ/Wa5fA\npztrkR5qBsJGu2ghe8yGR6OWHI4zmXcHTF8Gz7vbifJxddmG+tYEmO89sfgArg6S\nReT494KK/XL/YGjEzQIDAQAB\n-----END PUBLIC KEY-----\n"];
const ec = ["-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgDvykWzZQAKBFfL4v\nZoWArLStZ/I57PhtetL3hKJiICChRANCAASBevvpQc5GeD+xOUGcrs+qfIua6Tsh\nceEVdsnLR6k4pcPu99iLnZ8AwzPruAEqGHT33fp4nwBOujjRHOyXNR37\n-----END PRIVATE KEY-----\n", "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEgXr76UHORng/sTlBnK7PqnyLmuk7\nIXHhFXbJy0epOKXD7vfYi52fAMMz67gBKhh09936eJ8ATro40RzslzUd+w==\n-----END PUBLIC KEY-----\n"];

export const cases = {
  jsonwebtoken: () => [
    jwt.sign({ a: 1, iat: 5 }, "secret"), jwt.sign({ a: 1, iat: 5 }, "secret", { algorithm: "HS512", keyid: "k" }),
    jwt.sign({ a: 1, iat: 5 }, rsa[0], { algorithm: "RS256", allowInsecureKeySizes: true }),
    jwt.verify(jwt.sign({ a: 1, iat: 5 }, ec[0], { algorithm: "ES256" }), ec[1]),
    jwt.verify(jwt.sign({ a: 1, iat: 5 }, rsa[0], { algorithm: "PS256", allowInsecureKeySizes: true }), rsa[1], { allowInvalidAsymmetricKeyTypes: true }),
  ],
  "jsonwebtoken refuses": () => {
    const refused = (f) => { try { return f(); } catch (e) { return [e.name, e.message]; } };
    return [refused(() => jwt.verify(`${jwt.sign({ iat: 5 }, "secret")}x`, "secret")), refused(() => jwt.verify(jwt.sign({ iat: 5 }, "secret"), "other")),
      refused(() => jwt.verify(jwt.sign({ iat: 5, exp: 6 }, "secret"), "secret")), refused(() => jwt.sign({}, "secret", { algorithm: "RS256" }))];
  },
  "jsonwebtoken with callbacks": () => new Promise((done, fail) => {
    jwt.sign({ b: 2, iat: 7 }, "secret", {}, (error, token) => (error ? fail(error) : jwt.verify(token, "secret", (e, data) => (e ? fail(e) : done([token, data])))));
  }),
  "cookie-signature": () => [signature.sign("hello", "tobi"), signature.unsign(signature.sign("hello", "tobi"), "tobi"), signature.unsign("hello.x", "tobi")],
  bcryptjs: async () => [bcrypt.hashSync("a", "$2b$04$abcdefghijklmnopqrstuu"), await bcrypt.compare("a", bcrypt.hashSync("a", 4))],
  "uuid of a name": () => nameUUID("hello", "6ba7b810-9dad-11d1-80b4-00c04fd430c8"),
  "tar-stream through gzip": async () => {
    const pack = tar.pack();
    pack.entry({ name: "a.txt", mtime: new Date(0) }, "hello");
    pack.entry({ name: "b/c.bin", mtime: new Date(0) }, Buffer.alloc(5000, 7));
    pack.finalize();
    const out = [];
    const extract = tar.extract();
    extract.on("entry", (header, stream, next) => {
      const hash = createHash("sha256");
      stream.on("data", (part) => hash.update(part));
      stream.on("end", () => {
        out.push([header.name, header.size, hash.digest("hex")]);
        next();
      });
    });
    await pipeline(pack, zlib.createGzip(), zlib.createGunzip(), extract);
    return out;
  },
  "pako and zlib": () => [Buffer.from(pako.ungzip(zlib.gzipSync("from zlib"))).toString(), zlib.inflateSync(pako.deflate(Buffer.from("from pako"))).toString()],
  "csv-stringify": () => new Promise((done, fail) => {
    stringify([[1, "a,b"], [2, "c\"d"]], { header: true, columns: ["n", "text"] }, (error, text) => (error ? fail(error) : done(text)));
  }),
  async "csv-stringify as a stream"() {
    let text = "";
    await pipeline(Readable.from([[1, 2], ["x", null], [true, { a: 1 }]]), stringify({ delimiter: ";", quoted: true }), async (parts) => {
      for await (const part of parts) text += part;
    });
    return text;
  },
  "csv-stringify refuses": () => { try { stringify({ delimiter: 5 }); } catch (e) { return [e.code, e.message]; } },
  async "csv-parse as a stream"() {
    const rows = [];
    for await (const row of Readable.from(["a,b\n1,", "\"x, y\"\n"]).pipe(parseCSV({ columns: true }))) rows.push(row);
    return rows;
  },
  xml2js: async () => [
    await parseStringPromise("<a x='1'><b>c</b><b/></a>"), new Builder({ headless: true }).buildObject({ a: { $: { x: 1 }, b: "c" } }),
    await new Parser({ explicitArray: false }).parseStringPromise("<r><n>1</n></r>"),
  ],
};

export default worker(cases);
