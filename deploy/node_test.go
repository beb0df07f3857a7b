package deploy_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy"
)

func TestBuildNamesModulesOfNodeAndWhatDoesTheirWork(t *testing.T) {
	for module, advice := range map[string]string{
		"node:buffer": "use Uint8Array", "buffer": "use Uint8Array", "node:crypto": "use the global crypto", "crypto": "use the global crypto",
		"fs/promises": "a worker has no files", "node:fs": "a worker has no files", "events": "use EventTarget", "node:zlib": "use CompressionStream",
		"https": "use fetch()", "node:process": "a worker has no process of its own", "util": "use TextEncoder",
		"node:sqlite": "use the web API", "node:nonesuch": "use the web API",
	} {
		for _, form := range []string{`import * as m from "%"; export default m;`, `export default require("%");`, `export default await import("%");`} {
			ds := refused(t, write(t, t.TempDir()+"/app.js", strings.ReplaceAll(form, "%", module)))
			require.Len(t, ds, 1, module)
			require.Equal(t, `import of "`+module+`": a worker has no node: modules but node:async_hooks`, ds[0].Text)
			require.Len(t, ds[0].Notes, 1)
			require.True(t, strings.HasPrefix(ds[0].Notes[0], advice), ds[0].Notes[0])
		}
	}
}

// Packages that have a way of their own for platforms without a module are left to take it.
func TestBuildLetsPackagesTryModulesOfNode(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/node_modules/careful/package.json", `{"name":"careful","version":"1.0.0","main":"index.js"}`)
	write(t, dir+"/node_modules/careful/index.js",
		`let os; try { os = require("node:os"); } catch { os = { cpus: () => [] }; } exports.cores = os.cpus().length;
		 exports.files = () => import("node:fs").catch(() => null);`)
	b, err := deploy.Build(t.Context(), write(t, dir+"/app.js", `import { cores, files } from "careful"; export default { task: async () => [cores, await files()] };`))
	require.NoError(t, err)
	require.Contains(t, b.Code, "cpus")
	require.Empty(t, b.Warnings)
}

func TestBuildTakesPackagesCalledLikeModulesOfNode(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/node_modules/events/package.json", `{"name":"events","version":"3.0.0","main":"index.js"}`)
	write(t, dir+"/node_modules/events/index.js", `exports.EventEmitter = class EventEmitter {};`)
	for _, name := range []string{"events", "events/"} {
		_, err := deploy.Build(t.Context(), write(t, dir+"/app.js", `import { EventEmitter } from "`+name+`"; export default { task: () => new EventEmitter() };`))
		require.NoError(t, err, name)
	}
}
