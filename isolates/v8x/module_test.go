package v8x

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const cached = `
export default () => inner();
function inner() { throw new Error("here"); }
export function unused() { return 1 }
`

func TestCodeCache(t *testing.T) {
	_, c := newContext(t, roomy)
	require.Nil(t, c.CodeCache()) // no module yet
	state, r := c.Module(Source{Name: "m.js", Text: cached})
	require.Equal(t, Evaluated, state)
	out := string(r.Out)
	early := c.CodeCache()
	require.NotEmpty(t, early)
	require.Equal(t, out, string(r.Out)) // what the module sent is still there
	var call Call
	require.ErrorContains(t, c.Call(call.Reset(50).Bytes(), nil).Err, "m.js:3:20: Uncaught Error: here")
	late := c.CodeCache()
	require.Greater(t, len(late), len(early)) // inner was compiled

	for _, code := range [][]byte{early, late} {
		_, c := newContext(t, roomy)
		state, _ := c.Module(Source{Name: "m.js", Text: cached, Cache: code})
		require.Equal(t, Evaluated, state)
		require.False(t, c.CacheRejected())
		require.ErrorContains(t, c.Call(call.Reset(50).Bytes(), nil).Err, "m.js:3:20: Uncaught Error: here")
	}
}

func TestCodeCacheRejected(t *testing.T) {
	_, c := newContext(t, roomy)
	c.Module(Source{Name: "m.js", Text: cached})
	code := c.CodeCache()
	for name, s := range map[string]Source{
		"another text": {Name: "m.js", Text: cached + " ", Cache: code},
		"cut":          {Name: "m.js", Text: cached, Cache: code[:len(code)-8]},
		"nonsense":     {Name: "m.js", Text: cached, Cache: []byte("nonsense")},
	} {
		t.Run(name, func(t *testing.T) {
			_, c := newContext(t, roomy)
			state, _ := c.Module(s)
			require.Equal(t, Evaluated, state)
			require.True(t, c.CacheRejected())
			require.NotEmpty(t, c.CodeCache())
		})
	}
}

func TestCodeCacheOfAPendingModule(t *testing.T) {
	_, c := newContext(t, roomy)
	state, _ := c.Module(Source{Name: "m.js", Text: `await new Promise(() => {})`})
	require.Equal(t, Pending, state)
	require.NotEmpty(t, c.CodeCache())
	_, c = newContext(t, roomy)
	state, _ = c.Module(Source{Name: "m.js", Text: `let let`})
	require.Equal(t, CompileError, state)
	require.Nil(t, c.CodeCache())
}

func TestImportMeta(t *testing.T) {
	for name, url := range map[string]string{
		"m.js": "file:///m.js", "dir/a b#?%.js": "file:///dir/a%20b%23%3F%25.js", "größe.js": "file:///gr%C3%B6%C3%9Fe.js",
		"": "file:///",
	} {
		_, c := newContext(t, roomy)
		state, r := c.Module(Source{Name: name, Text: `import.meta.more = 1;
			if (import.meta.url !== ` + "`" + url + "`" + ` || import.meta.more !== 1 || Reflect.getPrototypeOf(import.meta) !== null) throw new Error(import.meta.url);
			export default () => { import.meta.url = "x"; delete import.meta.url; throw new Error(String(import.meta.url)) }`})
		require.Equal(t, Evaluated, state, "%s", r.Out)
		var call Call
		require.ErrorContains(t, c.Call(call.Reset(50).Bytes(), nil).Err, "undefined")
	}
}

// import() gives these errors for every kind of specifier, and for none.
func TestDynamicImport(t *testing.T) {
	for specifier, want := range map[string]string{
		`"./x.js"`:                        `TypeError: cannot import "./x.js": imports are bundled at deploy`,
		`import.meta.url`:                 `TypeError: cannot import "file:///m.js": imports are bundled at deploy`,
		`"\ud800"`:                        "TypeError: cannot import \"\ufffd\": imports are bundled at deploy",
		`undefined`:                       `TypeError: cannot import "undefined": imports are bundled at deploy`,
		`"x", { with: { type: "json" } }`: `TypeError: cannot import "x": imports are bundled at deploy`,
		`"ü".repeat(1e6)`:                 `TypeError: cannot import "` + strings.Repeat("ü", 100) + `…": imports are bundled at deploy`,
		`"x" + "ü".repeat(1e6)`: `TypeError: cannot import "x` + strings.Repeat("ü", 99) +
			`…": imports are bundled at deploy`,
		`"x", { get with() { throw 1 } }`:          "1",
		`Symbol("s")`:                              "TypeError: Cannot convert a Symbol value to a string",
		`{ toString() { throw new Error("no") } }`: "Error: no",
	} {
		t.Run(specifier, func(t *testing.T) {
			_, c := newContext(t, roomy)
			state, r := c.Module(Source{Name: "m.js", Text: `let said;
				Promise.prototype.then = () => { throw new Error("patched") };
				try { await import(` + specifier + `) } catch (e) { said = String(e) }
				export default () => { throw said }`})
			require.Equal(t, Evaluated, state, "%s", r.Out)
			var call Call
			require.EqualError(t, c.Call(call.Reset(50).Bytes(), nil).Err, "m.js:4:28: Uncaught "+want)
		})
	}
}
