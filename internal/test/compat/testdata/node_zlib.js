// node:zlib in Cloudflare's workerd and in Pinwheel. A case has the name of its list and its number in it. Compressed bytes
// are each runtime's own, so what is shown is their content.
import { Buffer } from "node:buffer";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { promisify } from "node:util";
import zlib from "node:zlib";

// show makes JSON of a result. Messages of errors are each runtime's own.
function show(v) {
  if (v instanceof Error) return { error: v.name, code: v.code, errno: v.errno };
  if (v === undefined) return "undefined";
  if (typeof v === "function") return `function ${v.name}`;
  if (Buffer.isBuffer(v)) return v.length > 100 ? `${v.length} ${zlib.crc32(v)}` : v.toString("hex");
  if (Array.isArray(v)) return v.map(show);
  return v;
}

const P = (s) => new Promise(s);
const data = ["", "abc", "ü€😀", Buffer.alloc(70000, "abcdefg"), new Uint16Array([1, 2, 3]), new DataView(new ArrayBuffer(5)), new ArrayBuffer(4)];
const wrong = [5, null, undefined, {}, [1]];
const pairs = [["gzip", "gunzip"], ["deflate", "inflate"], ["deflateRaw", "inflateRaw"], ["brotliCompress", "brotliDecompress"], ["gzip", "unzip"], ["deflate", "unzip"]];
const cap = (s) => s[0].toUpperCase() + s.slice(1);
const options = [{ level: 0 }, { level: 1 }, { level: 9 }, { level: 10 }, { level: "x" }, { level: NaN }, { windowBits: 7 }, { windowBits: 9 }, { chunkSize: 1 }, { chunkSize: 100 }, { strategy: 2 }, { strategy: 9 }, { memLevel: 0 }, { memLevel: 9 }, { flush: 9 }, { finishFlush: 2 }, { maxOutputLength: 0 }, { maxOutputLength: 5 }];
const cut = zlib.gzipSync("abcdefgh").subarray(0, -5);
const flipped = (b, at) => { const c = Buffer.from(b); c[(at + c.length) % c.length] ^= 1; return c; };
const collect = async (stream) => { const out = []; for await (const c of stream) out.push(c); return Buffer.concat(out); };

const lists = {
  "there and back": pairs.flatMap(([a, b]) => data.flatMap((d) => [() => zlib[`${b}Sync`](zlib[`${a}Sync`](d)), async () => promisify(zlib[b])(await promisify(zlib[a])(d)), () => collect(Readable.from([zlib[`${a}Sync`](d)]).pipe(zlib[`create${cap(b)}`]()))])),
  wrong: pairs.slice(0, 4).flatMap(([a, b]) => wrong.flatMap((d) => [() => zlib[`${a}Sync`](d), () => zlib[`${b}Sync`](d)])),
  options: options.flatMap((o) => [() => zlib.gunzipSync(zlib.gzipSync("abcdefghijk", o)), () => zlib.inflateSync(zlib.deflateSync("abcdefghijk"), o), () => promisify(zlib.inflateRaw)(zlib.deflateRawSync("abcdefghijk", { level: 1 }), o)]),
  data: ["zzzz", "", "ÿÿ"].map((s) => Buffer.from(s, "latin1")).concat([cut, Buffer.concat([zlib.gzipSync("a"), zlib.gzipSync("b")]), Buffer.concat([zlib.gzipSync("a"), Buffer.alloc(5)]), Buffer.concat([zlib.gzipSync("a"), Buffer.from("xx")]), Buffer.concat([zlib.deflateSync("a"), Buffer.from("xx")]), Buffer.concat([zlib.deflateRawSync("a"), Buffer.from("xx")]), flipped(zlib.gzipSync("abc"), -8), flipped(zlib.gzipSync("abc"), -1), flipped(zlib.deflateSync("abc"), -1), flipped(zlib.gzipSync("abc"), 0)]).flatMap((d) => ["gunzip", "inflate", "inflateRaw", "unzip"].flatMap((m) => [() => zlib[`${m}Sync`](d), () => promisify(zlib[m])(d), () => zlib[`${m}Sync`](d, { finishFlush: zlib.constants.Z_SYNC_FLUSH })])),
  brotli: [() => zlib.brotliDecompressSync(Buffer.alloc(0)), () => zlib.brotliDecompressSync(zlib.brotliCompressSync("hello hello").subarray(0, -3)), () => zlib.brotliCompressSync("a", { params: { 999: 1 } }), () => zlib.brotliDecompressSync(zlib.brotliCompressSync("a", { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 4 } })), () => zlib.brotliDecompressSync(Buffer.from("CwCAYQM=", "base64"))],
  crc32: [() => zlib.crc32("hello"), () => zlib.crc32(Buffer.from("hello"), 5), () => zlib.crc32(5), () => zlib.crc32("a", -1), () => zlib.crc32("")],
  known: [() => zlib.gunzipSync(Buffer.from("H4sIAAAAAAACA0tMSgYAwkEkNQMAAAA=", "base64")), () => zlib.inflateSync(Buffer.from("789c4b4c4a0600024d0127", "hex")), () => zlib.inflateRawSync(Buffer.from("4b4c4a0600", "hex"))],
  streams: [() => { const g = zlib.createGzip(); g.end("abc"); return collect(g).then((b) => zlib.gunzipSync(b)); }, async () => { const g = zlib.createGzip(); const got = []; g.on("data", (c) => got.push(c)); g.write("abc"); await P((ok) => g.flush(ok)); return zlib.gunzipSync(Buffer.concat(got), { finishFlush: 2 }); }, async () => { const g = zlib.createGunzip(); g.end(Buffer.from("no gzip")); return collect(g); }, async () => { const g = zlib.createGunzip(); const b = zlib.gzipSync(Buffer.alloc(100000, "xyz")); for (let i = 0; i < b.length; i++) g.write(b.subarray(i, i + 1)); g.end(); return collect(g); }, async () => { let out; await pipeline(Readable.from(["a", "b"]), zlib.createDeflate(), zlib.createInflate(), async (s) => { out = await collect(s); }); return out; }, () => zlib.createGzip() instanceof zlib.Gzip, () => new zlib.Gunzip() instanceof zlib.Gunzip, () => { const g = zlib.createGzip(); g.write("abc"); return P((ok) => g.close(() => ok(g.destroyed))); }, () => { const g = zlib.createDeflate(); g.end("abcd"); return P((ok) => g.on("data", () => {}).on("end", () => ok(g.bytesWritten))); }, () => zlib.gzip("a"), () => typeof zlib.codes.Z_OK, () => zlib.codes[0], () => zlib.constants.Z_BEST_COMPRESSION, () => Object.keys(zlib.constants).length > 100, () => { const g = zlib.createGzip({ level: 1 }); const out = collect(g); g.write("abc"); return P((ok) => g.params(9, 0, () => { g.end("def"); ok(out.then((b) => zlib.gunzipSync(b))); })); }],
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
