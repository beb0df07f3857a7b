package isolates

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// What Node's modules compute is CPU time and memory of the event, and ends with it.
func TestNodesWorkIsCharged(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ends := func(code string, limits workers.Limits) *events.Failure {
		w := worker("w", `import { builtin } from "pinwheel:node";
			const crypto = builtin("crypto"), zlib = builtin("zlib"), { promisify } = builtin("util");
			export default { async task() { `+code+` } }`)
		w.Limits = limits
		return b.run(w, task("null")).end.Failure
	}
	cpu := workers.Limits{CPU: workers.Millis(300 * time.Millisecond), Wall: workers.Millis(patience)}
	for _, code := range []string{
		`crypto.pbkdf2Sync("a", "b", 2e7, 20, "sha1")`,
		`await promisify(crypto.pbkdf2)("a", "b", 2e7, 20, "sha1")`,
		`for (;;) crypto.scryptSync("a", "b", 20)`,
		`const data = Buffer.alloc(8e6); for (;;) crypto.createHash("sha512").update(data)`,
		`const data = Buffer.alloc(8e6); for (;;) zlib.gzipSync(data, { level: 9 })`,
		`const c = crypto.createCipheriv("aes-256-gcm", Buffer.alloc(32), Buffer.alloc(12)), data = Buffer.alloc(4e6); for (;;) c.update(data)`,
		`for (;;) crypto.generateKeyPairSync("rsa", { modulusLength: 1024 })`,
		// A megabyte of zeros a thousand times, which nobody keeps.
		`const bomb = zlib.gzipSync(Buffer.alloc(1 << 20)), s = zlib.createGunzip(); s.resume();
			for (let i = 0; i < 1e5; i++) if (!s.write(bomb)) await new Promise((ok) => s.once("drain", ok));`,
	} {
		f := ends(code, cpu)
		require.NotNil(t, f, code)
		require.Equal(t, events.ReasonCPU, f.Reason, "%s: %s", code, f.Message)
	}
	memory := workers.Limits{CPU: workers.Millis(30 * time.Second), Wall: workers.Millis(patience), HeapMB: 32}
	for _, code := range []string{
		`await promisify(zlib.gunzip)(Buffer.concat(Array(100).fill(zlib.gzipSync(Buffer.alloc(1 << 20)))))`,
		`zlib.gunzipSync(Buffer.concat(Array(40).fill(zlib.gzipSync(Buffer.alloc(1 << 20)))))`,
		`crypto.scryptSync("a", "b", 20, { N: 1 << 16, maxmem: 1 << 30 })`,
		`await promisify(crypto.scrypt)("a", "b", 20, { N: 1 << 16, maxmem: 1 << 30 })`,
		`crypto.randomBytes(2147483647)`,
	} {
		require.NotNil(t, ends(code, memory), code)
	}
	// Results are held until they are there. A million bytes in each of 200 are more than the worker may have.
	for _, code := range []string{
		`promisify(crypto.scrypt)("p", "s", 1048576, { N: 2, r: 1, p: 1 })`,
		`promisify(crypto.pbkdf2)("p", "s", 1, 1048576, "sha512")`,
		`crypto.subtle.importKey("raw", new Uint8Array(5), "PBKDF2", false, ["deriveBits"]).then((key) =>
			crypto.subtle.deriveBits({ name: "PBKDF2", hash: "SHA-512", salt: new Uint8Array(5), iterations: 1 }, key, 8388608))`,
	} {
		f := ends(`await Promise.all(Array.from({ length: 200 }, async () => { await `+code+`; }))`, memory)
		require.NotNil(t, f, code)
		require.Contains(t, f.Message, "outside of its heap", code)
	}
	// The first and the last step of scrypt.
	for _, code := range []string{
		`crypto.scryptSync("p", "s", 1048576, { N: 2, r: 8, p: 65536, maxmem: 1e9 })`,
		`await promisify(crypto.scrypt)("p", "s", 1048576, { N: 2, r: 8, p: 65536, maxmem: 1e9 })`,
		`crypto.scryptSync("p", Buffer.alloc(2e6), 20, { N: 2, r: 8, p: 65536, maxmem: 1e9 })`,
	} {
		f := ends(code, memory)
		require.NotNil(t, f, code)
		require.Contains(t, f.Message, "r * p is too large", code)
	}
	require.Nil(t, ends(`crypto.scryptSync("p", "s", 1048576); crypto.hkdfSync("sha512", "k", Buffer.alloc(4e6), Buffer.alloc(1024), 16320)`, memory))
	f := ends(`await promisify(crypto.scrypt)("a", "b", 20, { N: 1 << 15, r: 8, p: 8, maxmem: 1 << 30 })`,
		workers.Limits{CPU: workers.Millis(20 * time.Millisecond), Wall: workers.Millis(patience)})
	require.NotNil(t, f)
	require.Contains(t, f.Message, "of CPU time and more")
	require.Eventually(t, func() bool {
		return b.pool.holdings.Total() == 0 && b.pool.calls.Offload.Idle()
	}, patience, time.Millisecond)
}

// Code that calls a stream's _transform itself has two steps begin in one turn. One reader in Go does not do both, and
// no worker of the pool waits for ever.
func TestNodesStreamDoesOneStepAtATime(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *Config) { c.Threads = 4 })
	w := worker("w", `import { builtin } from "pinwheel:node";
		const zlib = builtin("zlib");
		export default { async task() {
			// Empty blocks: a step takes milliseconds and gives nothing.
			const long = Buffer.from("000000ffff".repeat(52000), "hex"), small = zlib.deflateRawSync("hello");
			const said = new Set();
			for (let round = 0; round < 40 || said.size < 2; round++) {
				const input = round % 2 ? long : small, g = zlib.createInflateRaw().on("error", () => {});
				await Promise.all([1, 2, 3, 4].map(() => new Promise((ok) => {
					g._transform(input, "", (error) => { said.add(error ? error.message : "done"); ok(); });
					g.on("close", ok);
					g.resume();
				})));
				g.destroy();
			}
			return [...said].sort();
		} }`)
	w.Limits = workers.Limits{CPU: workers.Millis(30 * time.Second), Wall: workers.Millis(patience)}
	o := b.run(w, task("null"))
	require.Nil(t, o.end.Failure)
	require.Contains(t, string(o.reply.Body), "a step of the stream is under way")
	require.Contains(t, string(o.reply.Body), "done")
	require.Eventually(t, func() bool {
		return b.pool.holdings.Total() == 0 && b.pool.calls.Offload.Idle()
	}, patience, time.Millisecond)
}

// No array of the worker comes to Go: its getters would run while a command is written, and could send another one.
func TestNodesModulesGiveGoNoArrayOfTheWorker(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := worker("w", `import { builtin } from "pinwheel:node";
		const crypto = builtin("crypto"), zlib = builtin("zlib"), { promisify } = builtin("util");
		const bytes = Buffer.from("data");
		export default { async task() {
			const pair = crypto.generateKeyPairSync("ec", { namedCurve: "P-256" }), jwk = pair.privateKey.export({ format: "jwk" });
			let ran = "";
			const note = (x) => { ran += x + " "; };
			const evil = Object.defineProperty([1], 0, { get() { note("a getter"); return 1; } });
			for (let i = 0; i < 20; i++) {
				Object.defineProperty(Array.prototype, i, { configurable: true, get: () => evil,
					set(value) { note("a setter of " + i); } });
			}
			try {
				for (const key of [pair.privateKey, { key: jwk, format: "jwk" }]) {
					const made = crypto.sign("sha256", bytes, key);
					note(crypto.verify("sha256", bytes, key, made));
				}
				const made = await promisify(crypto.sign)("sha256", bytes, pair.privateKey);
				note(await promisify(crypto.verify)("sha256", bytes, pair.publicKey, made));
				note(zlib.gunzipSync(zlib.gzipSync(bytes)).toString());
				for (const level of [evil, [1], {}, "1", 10]) {
					try {
						zlib.createDeflate().relevel(level);
						note("no error");
					} catch (error) { if (!/^ERR_/.test(error.code)) note(error.message); }
				}
				crypto.randomBytes = () => evil;
				const key = crypto.generateKeySync("aes", { length: 128 });
				note(key.symmetricKeySize);
				note(crypto.createHmac("md5", key).update("x").digest("hex").length);
			} finally {
				for (let i = 0; i < 20; i++) delete Array.prototype[i];
			}
			return ran;
		} }`)
	w.Limits = workers.Limits{CPU: workers.Millis(30 * time.Second), Wall: workers.Millis(patience)}
	o := b.run(w, task("null"))
	require.Nil(t, o.end.Failure, "%v", o.end.Failure)
	require.JSONEq(t, `{"success":true,"data":"true true true data 16 32 "}`, string(o.reply.Body))
}

// Additional data that comes in parts is all of it.
func TestNodesAdditionalDataInParts(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	answer := b.task(`import { builtin } from "pinwheel:node"; const crypto = builtin("crypto");
		export default { task() {
			return ["chacha20-poly1305", "aes-256-gcm"].map((name) => {
				const tag = (...parts) => {
					const c = crypto.createCipheriv(name, Buffer.alloc(32), Buffer.alloc(12), { authTagLength: 16 });
					for (const part of parts) c.setAAD(Buffer.from(part));
					c.update("x"); c.final();
					return c.getAuthTag().toString("hex");
				};
				return [tag("a", "b") === tag("ab"), tag("a", "b") === tag("b")];
			});
		} }`, "1")["data"]
	require.Equal(t, []any{[]any{true, false}, []any{true, false}}, answer)
}

// Empty blocks with tables of their own take long and have no content. What waits for them ends.
func TestNodesDecompressionThatTakesLong(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := worker("w", `import { builtin } from "pinwheel:node"; const zlib = builtin("zlib"), { promisify } = builtin("util");
		// A block of the kind 10 that has the codes 256 and 0, and one symbol, which ends it.
		const lengths = Array(18).fill("000");
		lengths[2] = lengths[17] = "100";
		const block = "001" + "00000" + "00000" + "0111" + lengths.join("") + "11111111" + "11101011" + "00" + "0";
		const bits = block.repeat(8), bytes = Buffer.alloc(block.length);
		for (let i = 0; i < bits.length; i++) bytes[i >> 3] |= bits[i] << (i & 7);
		const data = Buffer.alloc(4185000, bytes);
		export default { async task() {
			let said;
			try { zlib.inflateRawSync(data); } catch (error) { said = [error.code, error.message]; }
			try { await promisify(zlib.inflateRaw)(data); } catch (error) { said.push(error.code); }
			return said;
		} }`)
	w.Limits = workers.Limits{CPU: workers.Millis(30 * time.Second), Wall: workers.Millis(patience)}
	o := b.run(w, task("null"))
	require.Nil(t, o.end.Failure, "%v", o.end.Failure)
	t.Logf("%v", o.end.CPU)
	require.JSONEq(t, `{"success":true,"data":["ERR_OPERATION_FAILED",
		"decompression takes too long while the worker waits: use the form with a callback, or a stream", "Z_BUF_ERROR"]}`,
		string(o.reply.Body))
}

// Half a byte of hexadecimal digits is no data, and a short tag is one only for code that says how short it is.
func TestNodesArgumentsThatHideMistakes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	answer := b.task(`import { builtin } from "pinwheel:node"; const crypto = builtin("crypto");
		const key = Buffer.alloc(16), iv = Buffer.alloc(12), code = (f) => { try { f(); return ""; } catch (error) { return error.code; } };
		export default { task() {
			const updated = [crypto.createHash("md5"), crypto.createHmac("md5", "k"), crypto.createSign("md5"), crypto.createVerify("md5"),
				crypto.createCipheriv("aes-128-gcm", key, iv), crypto.createDecipheriv("aes-128-gcm", key, iv)];
			const tag = (n, options) => code(() => crypto.createDecipheriv("aes-128-gcm", key, iv, options).setAuthTag(Buffer.alloc(n)));
			return [[...new Set(updated.map((x) => code(() => x.update("616", "HEX"))))], code(() => updated[0].update("61", "hex")),
				[4, 8, 12, 15].map((n) => tag(n)), [4, 8, 12, 15].map((n) => tag(n, { authTagLength: n })), tag(16)];
		} }`, "1")["data"]
	const refused = "ERR_CRYPTO_INVALID_AUTH_TAG"
	require.Equal(t, []any{
		[]any{"ERR_INVALID_ARG_VALUE"}, "", []any{refused, refused, refused, refused}, []any{"", "", "", ""}, "",
	}, answer)
}
