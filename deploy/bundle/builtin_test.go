package bundle_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy/bundle"
)

func TestBuildGivesAsyncHooks(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"node:async_hooks", "async_hooks"} {
		dir := t.TempDir()
		b, err := bundle.Build(t.Context(), write(t, dir+"/app.js",
			`import { AsyncLocalStorage, AsyncResource } from "`+name+`"; const als = new AsyncLocalStorage();
			 export default { task: () => als.run(1, () => AsyncResource.bind(() => als.getStore())()) };`))
		require.NoError(t, err)
		require.Contains(t, b.Code, "globalThis")
		require.Contains(t, b.Code, "runInAsyncScope")
		require.NotContains(t, b.Code, "import ")
		require.Len(t, b.Inputs, 2, "app.js and its manifest: a builtin is no file")
	}
}

func TestBuildSaysWhatAsyncHooksLacks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := bundle.Build(t.Context(), write(t, dir+"/app.js", `import { createHook } from "node:async_hooks"; export default { task: createHook };`))
	require.ErrorContains(t, err, `No matching export in "node:async_hooks" for import "createHook"`)
}
