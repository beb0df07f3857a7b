// Packages that encode bytes, compress, hash and sign.
import { Packr, pack, unpack } from "msgpackr";
import * as msgpack from "@msgpack/msgpack";
import protobuf from "protobufjs";
import { create, fromBinary, toBinary, toJsonString } from "@bufbuild/protobuf";
import { TimestampSchema, timestampFromMs } from "@bufbuild/protobuf/wkt";
import * as pako from "pako";
import * as fflate from "fflate";
import JSZip from "jszip";
import nacl from "tweetnacl";
import { sha256 } from "@noble/hashes/sha2.js";
import { scrypt } from "@noble/hashes/scrypt.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import { secp256k1 } from "@noble/curves/secp256k1.js";
import { ed25519 } from "@noble/curves/ed25519.js";
import { gcm } from "@noble/ciphers/aes.js";
import { xchacha20poly1305 } from "@noble/ciphers/chacha.js";
import bcrypt from "bcryptjs";
import * as jose from "jose";
import * as uuid from "uuid";
import { customRandom, urlAlphabet } from "nanoid";
import { decodeTime, isValid, monotonicFactory } from "ulid";
import QRCode from "qrcode-svg";
import { worker } from "./answers.mjs";

const value = { id: 7, name: "Ada ü", list: [1.5, -2, null, true], bytes: new Uint8Array([1, 2, 255]), at: new Date(86_400_000) };
const text = "the quick brown fox ".repeat(50);
const bytes = (length) => Uint8Array.from({ length }, (_, i) => i);

export const cases = {
  msgpackr: () => [pack({ a: 1, list: [1.5, "ü"] }), unpack(pack(value)), new Packr({ structuredClone: true }).unpack(new Packr({ structuredClone: true }).pack(new Set([1n])))],
  "@msgpack/msgpack": () => [msgpack.encode(value, { sortKeys: true }), msgpack.decode(msgpack.encode(value))],
  protobufjs() {
    const root = protobuf.parse('syntax = "proto3"; message User { string name = 1; repeated int32 n = 2; map<string, double> m = 3; }').root;
    const user = root.lookupType("User");
    const data = user.encode({ name: "Ada", n: [1, 300], m: { x: 0.5 } }).finish();
    return [new Uint8Array(data), user.toObject(user.decode(data)), user.verify({ name: 1 })];
  },
  "@bufbuild/protobuf"() {
    const data = toBinary(TimestampSchema, timestampFromMs(1500));
    return [data, toJsonString(TimestampSchema, fromBinary(TimestampSchema, data)), create(TimestampSchema, { nanos: 5 }).nanos];
  },
  pako() {
    const zipped = pako.gzip(text);
    return [zipped.length, pako.ungzip(zipped, { toText: true, to: "string" }) === text || new TextDecoder().decode(pako.ungzip(zipped)) === text, pako.deflateRaw(bytes(9))];
  },
  fflate() {
    const zip = fflate.zipSync({ "a.txt": fflate.strToU8(text), dir: { "b.bin": bytes(20) } }, { mtime: "2026-01-01" });
    return [Object.keys(fflate.unzipSync(zip)), fflate.strFromU8(fflate.gunzipSync(fflate.gzipSync(fflate.strToU8(text)))) === text, fflate.zlibSync(bytes(9))];
  },
  async jszip() {
    const zip = new JSZip();
    zip.file("a.txt", text, { date: new Date(0) });
    zip.folder("dir").file("b.bin", bytes(20), { date: new Date(0) });
    const data = await zip.generateAsync({ type: "uint8array", compression: "DEFLATE", platform: "UNIX" });
    const back = await JSZip.loadAsync(data);
    return [data.length, Object.keys(back.files), (await back.file("a.txt").async("string")) === text, await back.file("dir/b.bin").async("base64")];
  },
  tweetnacl() {
    const pair = nacl.sign.keyPair.fromSeed(bytes(32));
    const box = nacl.secretbox(bytes(5), bytes(24), bytes(32));
    return [nacl.sign.detached(bytes(5), pair.secretKey), box, nacl.secretbox.open(box, bytes(24), bytes(32)), nacl.hash(bytes(3)), nacl.randomBytes(8).length];
  },
  "@noble/hashes": () => [bytesToHex(sha256(utf8ToBytes(text))), scrypt("password", "salt", { N: 256, r: 8, p: 1, dkLen: 16 })],
  "@noble/curves"() {
    const key = bytes(32).fill(7);
    const sig = secp256k1.sign(bytes(32), key, { prehash: false });
    return [sig, secp256k1.verify(sig, bytes(32), secp256k1.getPublicKey(key), { prehash: false }), ed25519.sign(bytes(3), key)];
  },
  "@noble/ciphers": () => [gcm(bytes(32), bytes(12)).encrypt(bytes(9)), xchacha20poly1305(bytes(32), bytes(24)).encrypt(bytes(9))],
  async bcryptjs() {
    const hash = await bcrypt.hash("secret", "$2b$04$abcdefghijklmnopqrstuu");
    return [hash, await bcrypt.compare("secret", hash), bcrypt.compareSync("other", hash), bcrypt.getRounds(await bcrypt.hash("a", 4))];
  },
  async jose() {
    const key = bytes(32);
    const token = await new jose.SignJWT({ a: 1 }).setProtectedHeader({ alg: "HS256" }).setIssuedAt(0).setIssuer("me").sign(key);
    const wrong = await jose.jwtVerify(token, bytes(32).fill(1)).catch((e) => e.code);
    return [token, (await jose.jwtVerify(token, key, { issuer: "me" })).payload, wrong];
  },
  uuid: () => [uuid.v5("hello.example.com", uuid.v5.DNS), uuid.v7({ random: bytes(16), msecs: 0, seq: 1 }), uuid.parse(uuid.v4({ random: bytes(16) }))],
  nanoid: () => [customRandom(urlAlphabet, 10, bytes)(), customRandom("ab", 5, (n) => bytes(n))()],
  ulid() {
    const next = monotonicFactory(() => 0.5);
    const [a, b] = [next(1_000), next(1_000)];
    return [a, b, decodeTime(a), isValid(a)];
  },
  "qrcode-svg": () => [new QRCode({ content: "https://example.com/ä", ecl: "M", join: true }).svg()],
};

export default worker(cases);
