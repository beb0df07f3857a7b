package bundle_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy/assets"
	"github.com/pinwheel-run/pinwheel/deploy/bundle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/test/wasmtest"
)

const (
	emptyWasm = "\x00asm\x01\x00\x00\x00"
	otherWasm = emptyWasm + "\x00\x02\x01a" // with a custom section
)

// An import of a module of WebAssembly stays in the bundle by the hash of its bytes, wherever it comes from and however
// it is written. A module that nothing uses is not in the bundle.
func TestBuildWebAssembly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir+"/package.json", `{}`)
	write(t, dir+"/add.wasm", emptyWasm)
	write(t, dir+"/same.wasm", emptyWasm)
	write(t, dir+"/node_modules/fast/package.json", `{"name":"fast","version":"1.0.0","main":"index.js"}`)
	write(t, dir+"/node_modules/fast/index.js", `import add from "./fast_bg.wasm"; export default add;`)
	write(t, dir+"/node_modules/fast/fast_bg.wasm", otherWasm)
	one, other := assets.HashOf([]byte(emptyWasm)), assets.HashOf([]byte(otherWasm))
	for form, want := range map[string][]string{
		`import add from "./add.wasm"; export default add;`:                                        {one},
		`import add from "./add.wasm?module"; export default add;`:                                 {one},
		`import a from "./add.wasm"; import b from "./same.wasm?module"; export default [a, b];`:   {one},
		`export default require("./add.wasm");`:                                                    {one},
		`export default await import("./add.wasm");`:                                               {one},
		`import fast from "fast"; export default fast;`:                                            {other},
		`import fast from "fast/fast_bg.wasm?module"; export default fast;`:                        {other},
		`import add from "./add.wasm"; import fast from "fast"; export default () => [add, fast];`: {min(one, other), max(one, other)},
		`import add from "./add.wasm"; export default {};`:                                         nil,
		`export default { task: () => typeof WebAssembly };`:                                       nil,
	} {
		b, err := bundle.Build(t.Context(), write(t, dir+"/app.js", form))
		require.NoError(t, err, form)
		var have []string
		for _, m := range b.Modules {
			have = append(have, m.Hash)
			require.Equal(t, m.Hash, assets.HashOf(m.Code))
			require.Regexp(t, `imported\d?\("`+m.Hash+`"\)`, b.Code, form)
		}
		require.Equal(t, want, have, form)
		require.Equal(t, len(want) > 0, strings.Contains(b.Code, `from "pinwheel:wasm"`), form)
		require.NoError(t, bundle.CheckModules(b.Modules))
		if len(want) > 0 && want[0] == one {
			require.Contains(t, strings.Join(b.Inputs, "\n"), ".wasm", "who watches the project sees a change of the module")
		}
	}
	b, err := bundle.Build(t.Context(), write(t, dir+"/app.js", `import add from "./add.wasm"; export default add;`))
	require.NoError(t, err)
	with, err := b.Hash()
	require.NoError(t, err)
	b.Modules = nil
	without, err := b.Hash()
	require.NoError(t, err)
	require.NotEqual(t, with, without)
}

// Who imports what no process would run learns that at deploy, at the place of the import.
func TestBuildRefusesWebAssembly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir+"/package.json", `{}`)
	write(t, dir+"/text.wasm", "no module")
	write(t, dir+"/bomb.wasm", string(wasmtest.VariablesAndBlocks(40_000, 1000)))
	write(t, dir+"/fine.wasm", emptyWasm)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "large.wasm"), make([]byte, 16<<20+1), 0o600))
	for path, want := range map[string]string{
		"text.wasm":  `import of "text.wasm": the module of WebAssembly is refused: byte 0: not a WebAssembly module of version 1`,
		"bomb.wasm":  "at most 2500000 allowed",
		"large.wasm": "at most 16777216",
		"fine.wasm?url": `import of "fine.wasm?url": a module of WebAssembly is imported as FILE.wasm or ` +
			`FILE.wasm?module`,
	} {
		ds := refused(t, write(t, dir+"/app.js", "// code\nimport add from \"./"+path+`"; export default add;`))
		require.Len(t, ds, 1, path)
		require.Contains(t, ds[0].Text, want)
		require.Equal(t, []any{dir + "/app.js", 2, 17}, []any{ds[0].File, ds[0].Line, ds[0].Column}, path)
	}
	ds := refused(t, write(t, dir+"/app.js", `import { imported } from "pinwheel:wasm"; export default imported("x");`))
	require.Len(t, ds, 1)
	require.Contains(t, ds[0].Text, `Could not resolve "pinwheel:wasm"`)
}

// What a bundle says of its modules is checked, whoever has made it.
func TestCheckModules(t *testing.T) {
	t.Parallel()
	module := func(code string) *workers.Module {
		return &workers.Module{Hash: assets.HashOf([]byte(code)), Code: []byte(code)}
	}
	a, b := module(emptyWasm), module(otherWasm)
	if a.Hash > b.Hash {
		a, b = b, a
	}
	require.NoError(t, bundle.CheckModules([]*workers.Module{a, b}))
	many := make([]*workers.Module, bundle.MaxModules+1)
	for want, modules := range map[string][]*workers.Module{
		"in the order of their hashes, each once": {b, a},
		"the order of their hashes, each once":    {a, a},
		"has the SHA-256 " + a.Hash:               {{Hash: b.Hash, Code: a.Code}},
		"it is named by its SHA-256":              {{Hash: strings.ToUpper(a.Hash), Code: a.Code}},
		"has 0 bytes: it has 1 to 16777216":       {{Hash: a.Hash}},
		"at most 64 are allowed":                  many,
		"not a WebAssembly module":                {module("x")},
		"at most 2500000 allowed":                 {module(string(wasmtest.VariablesAndBlocks(40_000, 1000)))},
		"have more than 33554432 bytes in all":    {large("1"), large("2"), large("3")},
	} {
		require.ErrorContains(t, bundle.CheckModules(modules), want)
	}
}

func large(digit string) *workers.Module {
	return &workers.Module{Hash: strings.Repeat(digit, 64), Code: make([]byte, bundle.MaxModule)}
}
