// Signs, verifies, encrypts and decrypts with every algorithm that jose has and this platform too.
import * as jose from "jose";

const payload = { sub: "ada", admin: true };
const code = async (p: Promise<unknown>) => p.then(() => "no error", (e) => e instanceof jose.errors.JOSEError ? e.code : e.name);

// keys makes a pair, or reads one of RSA: to make those takes long. By way of PEM and JWK, as keys come in practice.
async function keys(alg: string, pem?: string): Promise<{ one: CryptoKey | Uint8Array; other: CryptoKey | Uint8Array; same: boolean }> {
  if (alg.startsWith("HS")) {
    const secret = crypto.getRandomValues(new Uint8Array(Number(alg.slice(2)) / 8));
    return { one: secret, other: secret, same: true };
  }
  const one = pem ? await jose.importPKCS8(pem, alg, { extractable: true })
    : (await jose.generateKeyPair(alg, { extractable: true })).privateKey;
  const { kty, n, e, crv, x, y } = await jose.exportJWK(one);
  const jwk = JSON.parse(JSON.stringify({ kty, n, e, crv, x, y }));
  const other = (await jose.importJWK(jwk, alg, { extractable: true })) as CryptoKey;
  const again = await jose.importSPKI(await jose.exportSPKI(other), alg, { extractable: true });
  const thumbprints = [await jose.calculateJwkThumbprint(jwk), await jose.calculateJwkThumbprint(await jose.exportJWK(again))];
  return { one: await jose.importPKCS8(await jose.exportPKCS8(one), alg), other, same: thumbprints[0] === thumbprints[1] };
}

async function jws(alg: string, pems: string[]) {
  const { one, other, same } = await keys(alg, pems[0]);
  const token = await new jose.SignJWT(payload).setProtectedHeader({ alg }).setIssuedAt().setIssuer("urn:us").setAudience("them")
    .setExpirationTime("2h").setJti(crypto.randomUUID()).sign(one);
  const { payload: read, protectedHeader } = await jose.jwtVerify(token, other, { issuer: "urn:us", audience: "them" });
  const [head, body, signature] = token.split(".");
  const forged = [head, jose.base64url.encode(JSON.stringify({ ...read, sub: "eve" })), signature].join(".");
  const first = body[0] === "A" ? "B" : "A";
  const expired = await new jose.SignJWT(payload).setProtectedHeader({ alg }).setExpirationTime(1).sign(one);
  const stranger = (await keys(alg, pems[1])).other;
  const flat = await new jose.FlattenedSign(new TextEncoder().encode("bytes")).setProtectedHeader({ alg }).sign(one);
  return {
    sub: read.sub, alg: protectedHeader.alg, same,
    flat: new TextDecoder().decode((await jose.flattenedVerify(flat, other)).payload),
    forged: await code(jose.jwtVerify(forged, other)),
    stranger: await code(jose.jwtVerify(token, stranger)),
    cut: await code(jose.jwtVerify(`${head}.${first}${body.slice(1)}.${signature}`, other)),
    expired: await code(jose.jwtVerify(expired, other)),
    audience: await code(jose.jwtVerify(token, other, { audience: "others" })),
    algorithm: await code(jose.jwtVerify(token, other, { algorithms: ["none"] })),
  };
}

async function jwe(alg: string, enc: string, pem?: string, crv = "P-256") {
  let one: CryptoKey | Uint8Array, other: CryptoKey | Uint8Array;
  if (alg.startsWith("PBES2")) {
    one = other = new TextEncoder().encode("correct horse battery staple");
  } else if (alg === "dir") {
    one = other = (await jose.generateSecret(enc, { extractable: true })) as CryptoKey;
  } else if (/^A\d+(GCM)?KW$/.test(alg)) {
    one = other = (await jose.generateSecret(alg)) as CryptoKey;
  } else if (pem) {
    ({ one: other, other: one } = await keys(alg, pem));
  } else {
    ({ publicKey: one, privateKey: other } = await jose.generateKeyPair(alg, { crv }));
  }
  const token = await new jose.EncryptJWT(payload).setProtectedHeader({ alg, enc }).setExpirationTime("1h").encrypt(one);
  const { payload: read } = await jose.jwtDecrypt(token, other, { keyManagementAlgorithms: [alg] });
  const parts = token.split(".");
  const tag = parts[4];
  parts[4] = (tag[0] === "A" ? "B" : "A") + tag.slice(1);
  return { sub: read.sub, parts: parts.length, forged: await code(jose.jwtDecrypt(parts.join("."), other, { keyManagementAlgorithms: [alg] })) };
}

async function zip() {
  const key = await jose.generateSecret("A256GCM");
  const seal = (text: string) => new jose.CompactEncrypt(new TextEncoder().encode(text)).setProtectedHeader({ alg: "dir", enc: "A256GCM", zip: "DEF" }).encrypt(key);
  const token = await seal("again and ".repeat(1000));
  const bomb = await seal("0".repeat(2_000_000));
  return {
    short: token.length < 500, text: new TextDecoder().decode((await jose.compactDecrypt(token, key)).plaintext).length, bomb: await code(jose.compactDecrypt(bomb, key)),
    // Of the algorithms that jose has these are the ones that this platform has not.
    lacks: await Promise.all(["ML-DSA-44", "ML-DSA-65", "ML-DSA-87"].map((alg) => code(jose.generateKeyPair(alg)))),
  };
}

async function jwks() {
  const made = await Promise.all(["ES256", "Ed25519"].map((alg) => jose.generateKeyPair(alg)));
  const list = await Promise.all(made.map(async ({ publicKey }, i) => ({ ...(await jose.exportJWK(publicKey)), kid: `k${i}`, use: "sig" })));
  const set = jose.createLocalJWKSet({ keys: list });
  const token = await new jose.SignJWT(payload).setProtectedHeader({ alg: "Ed25519", kid: "k1" }).sign(made[1].privateKey);
  const unknown = await new jose.SignJWT(payload).setProtectedHeader({ alg: "Ed25519", kid: "k9" }).sign(made[1].privateKey);
  return {
    sub: (await jose.jwtVerify(token, set)).payload.sub,
    unknown: await code(jose.jwtVerify(unknown, set)),
    // The example of RFC 7638, section 3.1.
    thumbprint: await jose.calculateJwkThumbprint({
      kty: "RSA", e: "AQAB",
      n: "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw",
    }),
  };
}

// foreign verifies a token that somebody else signed, with the key from its X.509 certificate or PEM.
async function foreign({ token, pem, alg }: { token: string; pem: string; alg: string }) {
  const key = pem.includes("CERTIFICATE") ? await jose.importX509(pem, alg) : await jose.importSPKI(pem, alg);
  return (await jose.jwtVerify(token, key)).payload;
}

type Job = { jws?: string; jwe?: string; pems?: string[]; crv?: string; zip?: boolean; remote?: { token: string; url: string }; enc?: string; jwks?: boolean; foreign?: { token: string; pem: string; alg: string } };

export default {
  async task(event: { payload: Job }) {
    const job = event.payload;
    if (job.jws) return jws(job.jws, job.pems ?? []);
    if (job.jwe) return jwe(job.jwe, job.enc!, job.pems?.[0], job.crv);
    if (job.zip) return zip();
    if (job.remote) return (await jose.jwtVerify(job.remote.token, jose.createRemoteJWKSet(new URL(job.remote.url)))).payload;
    if (job.foreign) return foreign(job.foreign);
    return jwks();
  },
};
