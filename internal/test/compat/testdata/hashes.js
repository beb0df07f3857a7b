import { argon2id } from "@noble/hashes/argon2.js";
import { blake2b } from "@noble/hashes/blake2.js";
import { blake3 } from "@noble/hashes/blake3.js";
import { hkdf } from "@noble/hashes/hkdf.js";
import { hmac } from "@noble/hashes/hmac.js";
import { pbkdf2, pbkdf2Async } from "@noble/hashes/pbkdf2.js";
import { ripemd160, sha1 } from "@noble/hashes/legacy.js";
import { scrypt } from "@noble/hashes/scrypt.js";
import { sha256, sha384, sha512 } from "@noble/hashes/sha2.js";
import { keccak_256, sha3_256, shake256 } from "@noble/hashes/sha3.js";
import { bytesToHex, concatBytes, hexToBytes, randomBytes, utf8ToBytes } from "@noble/hashes/utils.js";
import * as web from "@noble/hashes/webcrypto.js";

export default {
  async task(event) {
    const data = utf8ToBytes(event.payload.text);
    const salt = utf8ToBytes("salt");
    const all = { sha1, ripemd160, sha256, sha384, sha512, sha3_256, keccak_256, blake2b, blake3 };
    const out = Object.fromEntries(Object.entries(all).map(([name, hash]) => [name, bytesToHex(hash(data))]));
    out.shake256 = bytesToHex(shake256(data, { dkLen: 20 }));
    out.hmac = bytesToHex(hmac(sha256, salt, data));
    out.hkdf = bytesToHex(hkdf(sha256, data, salt, utf8ToBytes("info"), 42));
    out.pbkdf2 = bytesToHex(pbkdf2(sha256, data, salt, { c: 10, dkLen: 32 }));
    out.pbkdf2Async = bytesToHex(await pbkdf2Async(sha256, data, salt, { c: 10, dkLen: 32 }));
    out.scrypt = bytesToHex(scrypt(data, salt, { N: 64, r: 8, p: 1, dkLen: 32 }));
    out.argon2id = bytesToHex(argon2id(data, utf8ToBytes("saltsalt"), { t: 1, m: 64, p: 1, dkLen: 32 }));
    out.webSha256 = bytesToHex(await web.sha256(data));
    out.webHmac = bytesToHex(await web.hmac(web.sha256, salt, data));
    const stepped = blake3.create({});
    for (const byte of data) stepped.update(Uint8Array.of(byte));
    out.blake3Stepped = bytesToHex(stepped.digest());
    out.random = randomBytes(16).length;
    out.round = bytesToHex(concatBytes(hexToBytes("00ff"), hexToBytes("7f")));
    return out;
  },
};
