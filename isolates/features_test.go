package isolates

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/isolates/js"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// tampered replaces every function and getter of the language's prototypes and constructors, and makes setters for the
// elements and the members of all objects. seen has what was used of them since. %s is code that runs then.
const tampered = `
let seen = ""; const log = (what) => { seen += what + "; "; };
const { defineProperty, getOwnPropertyDescriptor } = Object, { ownKeys, apply, getPrototypeOf } = Reflect;
const TypedArray = getPrototypeOf(Uint8Array), iterator = getPrototypeOf(getPrototypeOf([][Symbol.iterator]()));
const targets = [Object, Array, Function, String, Number, BigInt, Symbol, Boolean, Map, Set, WeakMap, WeakSet, WeakRef, Promise, Proxy, RegExp, Date, Error,
	TypeError, RangeError, ArrayBuffer, DataView, TypedArray, Uint8Array, JSON, Math, Reflect, iterator, getPrototypeOf([][Symbol.iterator]()),
	EventTarget, Event, AbortSignal, AbortController, Headers, Request, Response, URL, URLSearchParams, DOMException,
	getPrototypeOf(new Map().entries()), getPrototypeOf(new Set().values()), getPrototypeOf(""[Symbol.iterator]()), getPrototypeOf(async function* () {}).prototype];
const all = [];
for (const t of targets) { all.push([t, t.name ?? "?"]); if (typeof t === "function" && t.prototype) all.push([t.prototype, t.name + ".prototype"]); }
const join = Array.prototype.join, jsonOf = JSON.stringify, globals = Object.getOwnPropertyNames(globalThis);
function tamper() {
	for (let i = 0; i < all.length; i++) {
		const target = all[i][0], keys = ownKeys(target);
		for (let k = 0; k < keys.length; k++) {
			const key = keys[k], d = getOwnPropertyDescriptor(target, key), what = all[i][1] + "." + (typeof key === "symbol" ? "@@" : key);
			if (!d.configurable || key === "prototype" || key === "constructor" || key === "name" || key === "length") continue;
			if (typeof d.value === "function") { const old = d.value; defineProperty(target, key, { __proto__: null, configurable: true, writable: true, value: function (...args) { log(what); return apply(old, this, args); } }); }
			else if (d.get) { const old = d.get; defineProperty(target, key, { __proto__: null, configurable: true, get() { log(what); return apply(old, this, []); } }); }
		}
	}
	for (let i = 0; i < 40; i++) defineProperty(Object.prototype, i, { __proto__: null, configurable: true, set() { log("set " + i); } });
	const members = ["name", "hash", "value", "done", "then", "get", "set", "state", "kind", "type", "key", "usages", "params", "enumerable", "configurable", "writable", "digest", "curve", "exportKey"];
	for (let i = 0; i < members.length; i++) defineProperty(Object.prototype, members[i], { __proto__: null, configurable: true, get() { log("get " + members[i]); }, set() { log("set " + members[i]); } });
	const names = ["Object", "Array", "Map", "Set", "WeakMap", "Promise", "Symbol", "Reflect", "JSON", "Math", "Uint8Array", "ArrayBuffer", "TypeError", "EventTarget", "Event", "DOMException", "String", "Number", "BigInt", "Error", "Function"];
	for (let i = 0; i < names.length; i++) { const old = globalThis[names[i]]; defineProperty(globalThis, names[i], { __proto__: null, configurable: true, get() { log("global " + names[i]); return old; } }); }
}
`

// To scripts, what a feature puts on the global object has always been there.
func TestGlobalsOfFeatures(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{
		`Object.getOwnPropertyDescriptor(globalThis, "ReadableStream").value === ReadableStream && typeof ReadableStream`:                                   "function",
		`JSON.stringify(Object.getOwnPropertyDescriptor(globalThis, "Blob"))`:                                                                               `{"writable":true,"enumerable":false,"configurable":true}`,
		`JSON.stringify(Object.getOwnPropertyDescriptor(globalThis, "fetch"))`:                                                                              `{"writable":true,"enumerable":true,"configurable":true}`,
		`Object.keys(globalThis).includes("atob") && !Object.keys(globalThis).includes("Blob") && "Blob" in globalThis`:                                     "true",
		`(globalThis.fetch = 7) + "" + fetch + typeof Request`:                                                                                              "77function",
		`delete globalThis.URLPattern && typeof URLPattern + ("URLPattern" in globalThis)`:                                                                  "undefinedfalse",
		`globalThis.Blob = 1; (await new Response("a").blob()).constructor.name + Blob`:                                                                     "Blob1",
		`Object.defineProperty(globalThis, "WebSocket", { value: 3 }).WebSocket + JSON.stringify(Object.getOwnPropertyDescriptor(globalThis, "WebSocket"))`: `3{"value":3,"writable":true,"enumerable":false,"configurable":true}`,
		`Object.defineProperty(globalThis, "WebSocket", { enumerable: true }); typeof WebSocket + Object.keys(globalThis).includes("WebSocket")`:            "functiontrue",
		`Object.defineProperty(globalThis, "WebSocket", { writable: false }); typeof WebSocket`:                                                             "function",
		`Object.defineProperty(globalThis, "WebSocket", { get: () => 5 }); WebSocket`:                                                                       "5",
		`typeof Object.create(globalThis).EventSource + typeof EventSource`:                                                                                 "functionfunction",
		`const o = Object.create(globalThis); o.EventSource = 4; o.EventSource + typeof EventSource`:                                                        "4function",
		`typeof Reflect.get(globalThis, "FormData", {}) + typeof FormData + Reflect.set(globalThis, "File", 1, {}) + typeof File`:                           "functionfunctiontruefunction",
		`typeof new Proxy(globalThis, {}).MessageChannel`:                                                                                                   "function",
		`Object.freeze(globalThis); typeof TransformStream + typeof TransformStream + typeof fetch + Object.isFrozen(globalThis)`:                           "functionfunctionfunctiontrue",
		`Object.seal(globalThis); typeof TransformStream + typeof fetch + typeof fetch`:                                                                     "functionfunctionfunction",
		`Object.preventExtensions(globalThis); typeof TransformStream + typeof performance.now()`:                                                           "functionnumber",
		`const all = { ...globalThis }; typeof all.fetch + Object.entries(globalThis).length`:                                                               "",
		`new CompressionStream("gzip") instanceof CompressionStream && new TransformStream() instanceof TransformStream`:                                    "true",
		`typeof crypto.DigestStream + (crypto.DigestStream === crypto.DigestStream) + Object.keys(Object.getPrototypeOf(crypto)).includes("DigestStream")`:  "functiontruetrue",
		`performance = 5; performance`:                             "5",
		`caches === caches && caches.constructor === CacheStorage`: "true",
		`const old = caches; globalThis.caches = new Proxy(old, { get: (o, k) => (k === "mine" ? 7 : Reflect.get(o, k)) }); caches.mine + typeof caches.default.match + (caches.default === old.default)`: "7functiontrue",
		`typeof ReadableStream.prototype.getReader + (new Response("a").body.constructor === ReadableStream)`:                                                                                             "functiontrue",
		`structuredClone(new Blob(["x"])).constructor === Blob`: "true",
		nearTheEnd("void ReadableStream") + `return new ReadableStream({ start(c) { c.enqueue(1); c.close() } }).getReader().read().then((r) => typeof r.value + (failed > 0))`: "numbertrue",
		nearTheEnd("structuredClone(new Date(0))") + `return structuredClone({ a: 1 }).a + (failed > 0)`:                                                                        "2",
		nearTheEnd("void crypto.subtle") + `return crypto.subtle.digest("SHA-256", new Uint8Array(1)).then((d) => d.byteLength)`:                                                "32",
		nearTheEnd("void fetch") + `return typeof fetch + (failed > 0)`:                                                                                                         "functiontrue",
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			w := worker("w", `export default { async task() { const result = await (async () => { `+withReturn(code)+` })(); return String(result); } }`)
			w.Limits = workers.Limits{CPU: workers.Millis(20 * time.Second), Wall: workers.Millis(patience)}
			o := b.run(w, task("{}"))
			require.NotNil(t, o.reply, "%v %s", o.end.Failure, b.lines())
			var reply struct{ Data string }
			require.NoError(t, json.Unmarshal(o.reply.Body, &reply))
			if want != "" {
				require.Equal(t, want, reply.Data)
			}
		})
	}
}

// nearTheEnd is code that uses a feature in each frame from the end of the stack up, until it is there.
func nearTheEnd(use string) string {
	return `let ok = 0, failed = 0;
		const at = () => { try { at() } catch {} if (ok === 0) { try { ` + use + `; ok++ } catch { failed++ } } };
		at();
		`
}

// withReturn makes code return the value of its last statement.
func withReturn(code string) string {
	if strings.Contains(code, "return ") {
		return code
	}
	at := strings.LastIndex(code, "; ")
	return code[:at+1] + " return (" + strings.TrimSpace(code[at+1:]) + ")"
}

// childFeatures is set in the process of TestFeaturesTrustNobody.
const childFeatures = "PINWHEEL_TEST_FEATURES"

// A feature's files run after a worker has changed everything that they could use. They use none of it. Each name that
// asks for a feature is read first in a context of its own, so each feature runs also without what others have set.
func TestFeaturesTrustNobody(t *testing.T) {
	t.Parallel()
	if os.Getenv(childFeatures) == "" {
		self, err := os.Executable()
		require.NoError(t, err)
		child := exec.CommandContext(t.Context(), self, "-test.run=^TestFeaturesTrustNobody$", "-test.v")
		child.Env = append(os.Environ(), childFeatures+"=yes")
		out, err := child.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), "names are read: ")
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	require.NoError(t, v8x.Start(v8x.AllCompilers))
	files, err := js.Files()
	require.NoError(t, err)
	entry := slices.IndexFunc(files, func(f v8x.File) bool { return f.Name == js.Prefix+"events/entry.js" })
	files = slices.Insert(files, entry, v8x.File{Name: "test.js", Text: `globalThis.internal = internal; globalThis.say = (text) => { try { host.ask(0, "<" + text + ">") } catch {} };`})
	require.NoError(t, v8x.Snapshot(files, func(c *v8x.Context) { js.WarmUp(c, func(v8x.Result) {}) }))
	iso := v8x.NewIsolate(v8x.Limits{Heap: 256 << 20, Buffers: 64 << 20})
	defer iso.Close()
	evaluate := func(code string) (said string) {
		c, err := iso.NewContext(func(in []byte) ([]byte, error) {
			said = string(in[bytes.IndexByte(in, '<')+1 : len(in)-1])
			return nil, errors.New("there is no answer")
		})
		require.NoError(t, err)
		defer c.Close()
		var call v8x.Call
		require.NoError(t, c.Call(call.Reset(js.OpEnv).Strings(nil).Strings(nil).Strings(nil).Bool(false).Bool(false).
			String("blob").Bytes(),
			nil).Err)
		state, r := c.Module(v8x.Source{Name: "w.js", Text: tampered + code})
		require.NoError(t, r.Err)
		require.Equal(t, v8x.Evaluated, state, "%q", r.Out)
		return said
	}
	kinds, err := filepath.Glob("js/bindings/*.js")
	require.NoError(t, err)
	var reads []string
	for _, path := range kinds {
		if kind := strings.TrimSuffix(filepath.Base(path), ".js"); kind != "call" {
			reads = append(reads, "internal.bindingKind('"+kind+"')")
		}
	}
	require.Contains(t, reads, "internal.bindingKind('kv')")
	names, tests := inTable("names"), inTable("tests")
	require.Contains(t, names, "streams")
	require.Contains(t, tests, "isBlob")
	globals := strings.Fields(evaluate(`say(join.call(globals, " "))`))
	require.Empty(t, undeclared(files, names, tests, globals))
	for _, name := range names {
		if name != "node" && name != "nodeExports" { // these come before the worker's code
			reads = append(reads, "internal."+name)
		}
	}
	for _, f := range files {
		if name, ok := strings.CutPrefix(f.Feature, "node/"); ok && !slices.Contains(reads, nodeRead(name)) {
			reads = append(reads, nodeRead(name))
		}
	}
	require.Contains(t, reads, nodeRead("events"))
	for _, name := range globals {
		reads = append(reads, "globalThis."+name)
	}
	require.Contains(t, reads, "globalThis.fetch")
	for _, read := range append(reads, "crypto.subtle", "crypto.DigestStream") {
		seen := evaluate("import \"pinwheel:node\"; tamper(); seen = ''; try { void " + read + " } catch (e) { log(e.stack) } say(seen)")
		_, name, _ := strings.Cut(read, "globalThis.")
		require.Empty(t, strings.TrimPrefix(seen, "global "+name+"; "), read) // the read itself
	}
	t.Logf("names are read: %d", len(reads))
}

// nodeRead is code that runs the files of a module of Node.
func nodeRead(name string) string { return "internal.nodeModule('" + name + "')" }

var (
	setsInternal  = regexp.MustCompile(`internal\.(\w+) = `)
	setsMany      = regexp.MustCompile(`ObjectAssign\(internal, \{([^}]*)\}`)
	readsInternal = regexp.MustCompile(`internal\.(\w+)\b`)
	readsMany     = regexp.MustCompile(`const \{([^}]*)\} = internal;`)
	setsGlobal    = regexp.MustCompile(`define(?:Interface|Operation|Global)\((?:\w+, )?"(\w+)"(?:, operations[.\w]*|, [A-Z]\w*)?\);`)
	word          = regexp.MustCompile(`\w+`)
)

// inTable returns the names in such lists of features.js.
func inTable(list string) (names []string) {
	text, err := os.ReadFile("js/runtime/features.js")
	if err != nil {
		panic(err)
	}
	for _, m := range regexp.MustCompile(`\b`+list+`: \[([^\]]*)\]`).FindAllSubmatch(text, -1) {
		names = append(names, word.FindAllString(string(m[1]), -1)...)
	}
	return names
}

// undeclared lists what the table of features.js does not have: a name of internal that a feature's file sets and
// another feature's file, or one of none, reads; and a global name that such a file defines. A file that has no feature
// does not read such names at once, and no file takes another feature's tests, which are never true at first.
func undeclared(files []v8x.File, declared, tests, globals []string) (missing []string) {
	owner := map[string]string{} // of names that a feature's file sets
	for _, f := range files {
		if f.Feature == "" {
			continue
		}
		var names []string
		for _, m := range setsInternal.FindAllStringSubmatch(f.Text, -1) {
			names = append(names, m[1])
		}
		for _, m := range setsMany.FindAllStringSubmatch(f.Text, -1) {
			names = append(names, word.FindAllString(m[1], -1)...)
		}
		for _, name := range names {
			owner[name] = f.Feature
		}
		for _, m := range setsGlobal.FindAllStringSubmatch(f.Text, -1) {
			if !slices.Contains(globals, m[1]) {
				missing = append(missing, f.Name+" defines "+m[1])
			}
		}
	}
	for _, f := range files {
		reads := func(matches [][]string, atOnce bool) {
			for _, m := range matches {
				name := m[len(m)-1]
				isTest := slices.Contains(tests, name)
				switch of := owner[name]; {
				case of == "" || of == f.Feature:
				case !isTest && !slices.Contains(declared, name):
					missing = append(missing, f.Name+" reads internal."+name+" of "+of)
				case atOnce && (isTest || f.Feature == ""):
					missing = append(missing, f.Name+" reads "+name+" of "+of+" too early")
				}
			}
		}
		reads(readsInternal.FindAllStringSubmatch(f.Text, -1), false)
		for _, m := range readsMany.FindAllStringSubmatch(f.Text, -1) {
			reads(word.FindAllStringSubmatch(m[1], -1), true)
		}
	}
	return missing
}
