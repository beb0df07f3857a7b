package isolates

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

// sum exports sum(a, b), for i32.
const sum = "\x00asm\x01\x00\x00\x00\x01\x07\x01\x60\x02\x7f\x7f\x01\x7f\x03\x02\x01\x00" +
	"\x07\x07\x01\x03sum\x00\x00\x0a\x09\x01\x07\x00\x20\x00\x20\x01\x6a\x0b"

var withWASM = workers.Policy{WASM: true}

// The code of a bundle gets the bundle's modules of WebAssembly by their hashes, and no others.
func TestModulesOfABundle(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.cpu = ample
	b.pool.SetPolicy("acme", withWASM)
	digest := sha256.Sum256([]byte(sum))
	hash := hex.EncodeToString(digest[:])
	const noModule = `the bundle has no module of WebAssembly with the hash "x"`
	for code, want := range map[string]any{
		`imported("` + hash + `") instanceof WebAssembly.Module`:                                          true,
		`new WebAssembly.Instance(imported("` + hash + `")).exports.sum(40, 2)`:                           42.,
		`(() => { try { imported("x") } catch (e) { return e.message } })()`:                              noModule,
		`(async () => (await WebAssembly.instantiate(imported("` + hash + `"), {})).exports.sum(1, 2))()`: 3.,
	} {
		w := worker("w", `import { imported } from "pinwheel:wasm";
			const found = await (`+code+`); export default { task: () => found }`)
		w.Modules = []*workers.Module{{Hash: hash, Code: []byte(sum)}}
		o := b.run(w, task("1"))
		require.Nil(t, o.end.Failure, code)
		answer, err := json.Marshal(map[string]any{"success": true, "data": want})
		require.NoError(t, err)
		require.JSONEq(t, string(answer), string(o.reply.Body))
	}
}

// Owners without a grant, or without optimizing compilers, have no modules and no tags, and learn why.
func TestWebAssemblyNeedsTheGrantAndTheCompilers(t *testing.T) {
	t.Parallel()
	const granted = "this owner has no WebAssembly: its operator grants it (policy: wasm)"
	const compilers = "WebAssembly needs V8's optimizing compilers, which this owner does not have (policy: compilers)"
	b := newBench(t)
	b.cpu = ample
	for _, c := range []struct {
		policy workers.Policy
		why    string
	}{
		{workers.Policy{}, granted},
		{workers.Policy{Compilers: workers.CompilersBaseline, WASM: true}, compilers},
		{withWASM, ""},
	} {
		b.pool.SetPolicy("acme", c.policy)
		o := b.run(worker("w", `const m = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]);
			const said = async (f) => { try { await f() } catch (e) { return e.constructor.name + ": " + e.message } return "" };
			export default { async task() {
				new WebAssembly.Memory({ initial: 1 });
				new WebAssembly.Table({ initial: 1, element: "anyfunc" });
				return Promise.all([() => new WebAssembly.Module(m), () => WebAssembly.compile(m), () => WebAssembly.instantiate(m),
					() => WebAssembly.validate(m), () => WebAssembly.validate(m.subarray(8)), () => new WebAssembly.Tag({ parameters: [] }),
					() => new WebAssembly.Tag.prototype.constructor({ parameters: ["i32"] })].map(said))
			} }`), task("1"))
		require.Nil(t, o.end.Failure)
		var got struct{ Data []string }
		require.NoError(t, json.Unmarshal(o.reply.Body, &got))
		want := make([]string, 7)
		if c.why != "" {
			want = []string{"CompileError: WebAssembly.Module(): " + c.why, "CompileError: WebAssembly.compile(): " + c.why,
				"CompileError: WebAssembly.instantiate(): " + c.why, "CompileError: WebAssembly.validate(): " + c.why,
				"CompileError: WebAssembly.validate(): " + c.why, "TypeError: " + c.why, "TypeError: " + c.why}
		}
		require.Equal(t, want, got.Data, "%+v", c.policy)
	}
}
