package bundle_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy/bundle"
)

// However a source imports cloudflare:workers, its bundle imports names of it from the runtime, in one statement.
func TestBuildLeavesCloudflareWorkersToTheRuntime(t *testing.T) {
	t.Parallel()
	for source, imports := range map[string]int{
		`import { env } from "cloudflare:workers"; export default { task: () => env.A };`:                         1,
		`import { env as e, waitUntil } from "cloudflare:workers"; export default { task() { waitUntil(e.A) } };`: 1,
		`import * as cf from "cloudflare:workers"; export default { task: () => cf.env.A };`:                      1,
		`export { WorkerEntrypoint } from "cloudflare:workers"; export default { task() {} };`:                    1,
		`export default { task: async () => (await import("cloudflare:workers")).env };`:                          1,
		`const { env } = require("cloudflare:workers"); export default { task: () => env };`:                      1,
		`let m; try { m = require("cloudflare:workers") } catch {} export default { task: () => m };`:             1,
		`import { WorkerEntrypoint } from "cloudflare:workers"; export default class extends WorkerEntrypoint {}`: 1,
		`import { env } from "cloudflare:workers"; export default { task() {} };`:                                 0,
	} {
		b, err := bundle.Build(t.Context(), write(t, t.TempDir()+"/app.js", source))
		require.NoError(t, err, source)
		require.Empty(t, b.Warnings, source)
		require.Equal(t, imports, strings.Count(b.Code, `import { RpcTarget, WorkerEntrypoint, env, exports, waitUntil } from "cloudflare:workers";`), b.Code)
		require.Equal(t, imports, strings.Count(b.Code, "import "), b.Code)
		require.NotContains(t, b.Code, "import(", source)
	}
	// Packages import it like sources.
	dir := t.TempDir()
	write(t, dir+"/node_modules/auth/package.json", `{"name":"auth","version":"1.0.0","type":"module","exports":{"workerd":"./workerd.js","default":"./other.js"}}`)
	write(t, dir+"/node_modules/auth/workerd.js", `import { env } from "cloudflare:workers"; export const key = () => env.KEY;`)
	b, err := bundle.Build(t.Context(), write(t, dir+"/app.ts", `import { key } from "auth"; import { env } from "cloudflare:workers"; export default { task: () => key() + env.B };`))
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(b.Code, `from "cloudflare:workers"`))
}

// A name that the module does not export is refused where it is imported, with what to use instead.
func TestBuildRefusesNamesOfCloudflareWorkers(t *testing.T) {
	t.Parallel()
	for name, advice := range map[string]string{
		"DurableObject": "mode persistent keeps state", "WorkflowEntrypoint": "use tasks",
		"RpcStub": "no stub of an object passes",
		"withEnv": "pass the object as an argument", "nonesuch": "it exports RpcTarget, WorkerEntrypoint, env, exports, waitUntil",
	} {
		for form, column := range map[string]int{`import { % } from "cloudflare:workers"; export default { task: () => % };`: 10,
			`export { % } from "cloudflare:workers";`: 10} {
			path := write(t, t.TempDir()+"/app.js", "\n"+strings.ReplaceAll(form, "%", name))
			ds := refused(t, path)
			require.Len(t, ds, 1, name)
			require.Equal(t, []any{path, 2, column, `import of "` + name + `" from "cloudflare:workers": a worker does not have it`},
				[]any{ds[0].File, ds[0].Line, ds[0].Column, ds[0].Text})
			require.Len(t, ds[0].Notes, 1)
			require.True(t, strings.HasPrefix(ds[0].Notes[0], advice), ds[0].Notes[0])
		}
	}
	ds := refused(t, write(t, t.TempDir()+"/app.js", `import workers from "cloudflare:workers"; export default { task: () => workers };`))
	require.Equal(t, []string{`import names in braces: import { env } from "cloudflare:workers"`}, ds[0].Notes)
	// Whoever looks whether it is there may do without.
	b, err := bundle.Build(t.Context(), write(t, t.TempDir()+"/app.js",
		`import * as cf from "cloudflare:workers"; export const Base = cf.DurableObject ?? class {}; export default { task() {} };`))
	require.NoError(t, err)
	require.Len(t, b.Warnings, 1)
	require.Equal(t, `import of "DurableObject" from "cloudflare:workers": a worker does not have it`, b.Warnings[0].Text)
}
