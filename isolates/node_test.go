package isolates

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// What a bundle with Node's modules has, in every mode, and what one without has not.
func TestNodesGlobals(t *testing.T) {
	t.Parallel()
	const what = `export default { task: () => [typeof Buffer, typeof process, typeof global, "Buffer" in globalThis,
		Object.keys(globalThis).filter((name) => ["Buffer", "process", "global"].includes(name)), typeof builtin] }`
	inModes(t, func(t *testing.T, b *bench) {
		for code, want := range map[string]string{
			what:                             `["undefined","undefined","undefined",false,[],"undefined"]`,
			`import "pinwheel:node";` + what: `["function","object","object",true,[],"undefined"]`,
		} {
			o := b.run(worker("w", code), task("null"))
			require.Nil(t, o.end.Failure)
			require.JSONEq(t, `{"success":true,"data":`+want+`}`, string(o.reply.Body))
		}
	})
}

func TestNodesModules(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	answer := func(code string) any {
		return b.task(`import { builtin } from "pinwheel:node"; export default { async task() { `+code+` } }`, "1")["data"]
	}
	for code, want := range map[string]any{
		`return builtin("events") === builtin("events") && builtin("buffer").Buffer === Buffer`:  true,
		`return builtin("path/posix") === builtin("path") && builtin("sys") === builtin("util")`: true,
		`return typeof builtin("no such")`:                                   "object",
		`try { builtin({}) } catch (e) { return e.message }`:                 "the name of a module is a string",
		`const { readFileSync } = builtin("fs"); return typeof readFileSync`: "function",
		`class Mine extends builtin("net").Socket {}; return typeof Mine`:    "function",
		`return "readFileSync" in builtin("fs")`:                             false,
		`return builtin("worker_threads").isMainThread`:                      true,
		`try { builtin("fs").readFileSync("/etc/passwd") } catch (e) { return [e.code, e.message] }`: []any{
			"ERR_METHOD_NOT_IMPLEMENTED", "node:fs has no readFileSync in a worker: a worker has no files: import .json, .txt, .html, .md, .csv and .sql files, which are put into the bundle"},
		`try { new (builtin("dgram").Socket)() } catch (e) { return e.message }`:         "node:dgram has no Socket in a worker: use node:net or fetch(); a worker has no datagrams",
		`try { await builtin("fs").promises.readFile("a") } catch (e) { return e.code }`: "ERR_METHOD_NOT_IMPLEMENTED",
		`try { process.exit(3) } catch (e) { return e.message }`:                         "process.exit is not there in a worker: the code has asked to exit with 3; a worker answers one event after the other: return, or throw",
		`globalThis.Buffer = 5; return Buffer`:                                           float64(5),
	} {
		require.Equal(t, want, answer(code), code)
	}
	f := b.run(worker("w", `import { nonesuch } from "pinwheel:node"; export default {}`), task("null")).end.Failure
	require.Contains(t, f.Message, "'pinwheel:node' does not provide an export named 'nonesuch'")
}

// process.env has variables and secrets as texts, and no bindings. What code sets there stays out of env.
func TestProcessEnv(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := worker("w", `import "pinwheel:node"; export default { task(e, env) {
		const before = { ...process.env };
		process.env.NEW = 5;
		delete process.env.TEXT;
		return [before, { ...process.env }, "NEW" in env, env.TEXT];
	} }`)
	w.Vars, w.JSON = map[string]string{"TEXT": "a"}, map[string]string{"FLAGS": `{"b":1}`}
	w.Queues = map[string]string{"JOBS": "jobs"}
	o := b.run(w, task("null"))
	require.Nil(t, o.end.Failure)
	require.JSONEq(t, `{"success":true,"data":[{"TEXT":"a","FLAGS":"{\"b\":1}"},{"FLAGS":"{\"b\":1}","NEW":"5"},false,"a"]}`,
		string(o.reply.Body))
}

// A context is charged for the functions that Node's modules have, if its bundle may have them.
func TestFunctionsOfNodesModules(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("js/node/*.js")
	require.NoError(t, err)
	var all strings.Builder
	for _, path := range files {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		all.WriteString(strings.ReplaceAll(string(text), "pinwheel:node", ""))
	}
	require.LessOrEqual(t, v8x.FunctionsIn(all.String())-v8x.RuntimeFunctions, int64(v8x.NodeFunctions))
	const code = `export default {}`
	require.EqualValues(t, v8x.NodeFunctions, v8x.FunctionsIn(`import "pinwheel:node";`+code)-v8x.FunctionsIn(code))
}

// Guests that have changed the language before they use a module see what they gave to it, and nothing of the runtime.
func TestNodesModulesGiveNothingAway(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := worker("w", `import { builtin } from "pinwheel:node";
		const seen = new Set();
		const look = (value) => { if (value !== null && typeof value === "object" && ("nodeModules" in value || "ReflectApply" in value || typeof value.ask === "function")) seen.add("runtime"); };
		for (const proto of [Array.prototype, Function.prototype, String.prototype, Promise.prototype, Map.prototype, Set.prototype]) {
			for (const name of Object.getOwnPropertyNames(proto)) {
				const d = Object.getOwnPropertyDescriptor(proto, name);
				if (typeof d.value !== "function" || name === "constructor") continue;
				const { value } = d;
				Object.defineProperty(proto, name, { ...d, value: function (...args) { look(this); for (let i = 0; i < args.length; i++) look(args[i]); return Reflect.apply(value, this, args); } });
			}
		}
		export default { async task() {
			const EventEmitter = builtin("events"), { Buffer } = builtin("buffer"), util = builtin("util"), { Readable } = builtin("stream"), path = builtin("path");
			const e = new EventEmitter(); e.on("a", () => {}); e.emit("a"); e.removeAllListeners();
			util.inspect({ a: [1, new Map([[1, 2]])] }); util.format("%s %j", "a", {}); Buffer.concat([Buffer.from("abc"), Buffer.from("ff", "hex")]).toString("base64");
			path.resolve("a", "..", "b"); builtin("url").parse("http://a.com/b?c#d"); builtin("querystring").parse("a=b"); builtin("assert").deepStrictEqual([1], [1]);
			for await (const x of Readable.from(["a", "b"])) util.isDeepStrictEqual(x, "a");
			const crypto = builtin("crypto"), zlib = builtin("zlib");
			crypto.createHash("sha256").update("a").digest("hex"); crypto.createHmac("sha256", "k").update("a").digest(); crypto.scryptSync("a", "b", 8, { N: 16 });
			const cipher = crypto.createCipheriv("aes-128-gcm", Buffer.alloc(16), Buffer.alloc(12)); cipher.setAAD("x"); cipher.update("a", "utf8", "hex"); cipher.final();
			const { privateKey } = crypto.generateKeyPairSync("ed25519"); crypto.sign(null, Buffer.from("a"), privateKey); privateKey.export({ format: "jwk" });
			zlib.gunzipSync(zlib.gzipSync("abc")); await new Promise((ok) => zlib.gzip("abc", (e, small) => zlib.gunzip(small, ok))); crypto.createHash("md5").end("a");
			const { handleAsNodeRequest } = builtin("cloudflare:node"), http = builtin("http");
			http.createServer((q, r) => { r.setHeader("a", ["b"]); r.write("x"); setTimeout(() => q.pipe(r), 1); }).listen(7);
			await (await handleAsNodeRequest(7, new Request("http://x/", { method: "POST", body: "z" }))).text();
			await new Promise((ok) => http.get("http://nobody.invalid").on("error", ok)); await builtin("dns/promises").lookup("nobody.invalid").catch(() => {});
			process.nextTick(() => {}); process.env.A = "b"; builtin("timers").setTimeout(() => {}, 1);
			return [...seen];
		} }`)
	w.Mode = workers.Persistent
	o := b.run(w, task("null"))
	require.Nil(t, o.end.Failure, "%v", o.end.Failure)
	require.JSONEq(t, `{"success":true,"data":[]}`, string(o.reply.Body))
}
