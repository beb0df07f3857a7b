package bundle_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy/bundle"
)

// Workers have no WebAssembly: who imports a module of it learns that at deploy, from wherever the import is.
func TestBuildRefusesWebAssembly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir+"/add.wasm", "\x00asm\x01\x00\x00\x00")
	write(t, dir+"/node_modules/fast/package.json", `{"name":"fast","version":"1.0.0","main":"index.js"}`)
	write(t, dir+"/node_modules/fast/index.js", `import add from "./fast_bg.wasm"; export default add;`)
	write(t, dir+"/node_modules/fast/fast_bg.wasm", "\x00asm\x01\x00\x00\x00")
	for form, path := range map[string]string{
		`import add from "./add.wasm"; export default add;`: "./add.wasm", `import add from "./add.wasm?module"; export default add;`: "./add.wasm?module",
		`export default require("./add.wasm");`: "./add.wasm", `export default await import("./add.wasm");`: "./add.wasm",
		`import fast from "fast"; export default fast;`: "./fast_bg.wasm",
	} {
		ds := refused(t, write(t, dir+"/app.js", form))
		require.Len(t, ds, 1, form)
		require.Equal(t, fmt.Sprintf("import of %q: a worker has no WebAssembly, because nothing limits the memory of a WebAssembly module", path), ds[0].Text)
		require.Equal(t, []string{"use JavaScript that does the same: many packages have it as a separate entry or as another package"}, ds[0].Notes[:1])
		require.Equal(t, path == "./fast_bg.wasm", len(ds[0].Notes) == 2, "a note names the importer when it is not the source")
	}
	_, err := bundle.Build(t.Context(), write(t, dir+"/app.js", `export default { task: () => typeof WebAssembly };`))
	require.NoError(t, err)
}
