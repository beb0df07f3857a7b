package bundle_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy/bundle"
)

func TestBuildNamesModulesOfNodeAndWhatDoesTheirWork(t *testing.T) {
	t.Parallel()
	for module, advice := range map[string]string{
		"node:buffer": "use Uint8Array", "buffer": "use Uint8Array", "node:crypto": "use the global crypto",
		"crypto":      "use the global crypto",
		"fs/promises": "a worker has no files", "node:fs": "a worker has no files", "events": "use EventTarget",
		"node:zlib": "use CompressionStream",
		"https":     "use fetch()", "node:process": "a worker has no process of its own", "util": "use TextEncoder",
		"node:sqlite": "use the web API", "node:nonesuch": "use the web API",
	} {
		for _, form := range []string{`import * as m from "%"; export default m;`, `export default require("%");`,
			`export default await import("%");`} {
			ds := refused(t, write(t, t.TempDir()+"/app.js", strings.ReplaceAll(form, "%", module)))
			require.Len(t, ds, 1, module)
			require.Equal(t, `import of "`+module+`": a worker has Node's modules if its manifest says "node": true (wrangler's: the flag nodejs_compat)`, ds[0].Text)
			require.Len(t, ds[0].Notes, 1)
			require.True(t, strings.HasPrefix(ds[0].Notes[0], advice), ds[0].Notes[0])
		}
	}
}

func TestBuildNamesModulesOfOtherRuntimesAndWhatDoesTheirWork(t *testing.T) {
	t.Parallel()
	for module, want := range map[string]string{
		"cloudflare:email":     "send mail by the HTTP API",
		"cloudflare:workflows": "use tasks", "cloudflare:test": "use 'pinwheel dev'",
		"cloudflare:nonesuch": "use the web API",
		"bun:sqlite":          "use the web API", "npm:chalk@5": "install the package into node_modules",
		"jsr:@std/path": "install the package into node_modules",
	} {
		for _, form := range []string{`import * as m from "%"; export default m;`, `export default require("%");`,
			`export default await import("%");`} {
			ds := refused(t, write(t, t.TempDir()+"/app.js", strings.ReplaceAll(form, "%", module)))
			require.Len(t, ds, 1, module)
			require.Regexp(t, `^import of "`+module+`": it is a module of (Cloudflare's runtime|Bun|Deno), which a worker does not have$`, ds[0].Text)
			require.Len(t, ds[0].Notes, 1)
			require.True(t, strings.HasPrefix(ds[0].Notes[0], want), ds[0].Notes[0])
		}
	}
	// Whoever tries, and can do without, is let.
	_, err := bundle.Build(t.Context(), write(t, t.TempDir()+"/app.js",
		`let s; try { s = require("cloudflare:email") } catch {} export default { task: () => import("cloudflare:email").catch(() => s) }`))
	require.NoError(t, err)
	// The runtime has this one, whichever way it is imported.
	b, err := bundle.Build(t.Context(), write(t, t.TempDir()+"/app.js",
		`import { connect } from "cloudflare:sockets"; export default { task: async () => [connect, await import("cloudflare:sockets"), require("cloudflare:sockets")] }`))
	require.NoError(t, err)
	require.True(t, bundle.ImportsSockets(b.Code))
}

// A refused import of a package says how the source comes to need it.
func TestBuildTellsWhoImportsWhatIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir+"/node_modules/deep/package.json", `{"name":"deep","version":"1.0.0","main":"lib/index.js"}`)
	write(t, dir+"/node_modules/deep/lib/index.js", "exports.a = 1;\n  exports.read = require('./read');\n")
	write(t, dir+"/node_modules/deep/lib/read.js", "module.exports = require('fs').readFileSync;")
	write(t, dir+"/lib/db.ts", "\nimport { read } from 'deep';\nexport const db = read as any;\n")
	ds := refused(t, write(t, dir+"/app.ts", "import { db } from \"./lib/db\";\nimport gone from './gone';\nexport default { task: () => [db, gone] };\n"))
	require.Len(t, ds, 2)
	for _, d := range ds {
		switch d.File {
		case dir + "/app.ts":
			require.Equal(t, []any{2, `Could not resolve "./gone"`, 0}, []any{d.Line, d.Text, len(d.Notes)})
		case dir + "/node_modules/deep/lib/read.js":
			require.Equal(t, []string{
				"a worker has no files: import .json, .txt, .html, .md, .csv and .sql files, which are put into the bundle",
				"imported by " + dir + "/node_modules/deep/lib/index.js:2:26",
				"imported by " + dir + "/lib/db.ts:2:22",
				"imported by " + dir + "/app.ts:1:20",
			}, d.Notes)
		default:
			t.Fatal(d)
		}
	}
	// Files that import each other, and a chain that is long.
	write(t, dir+"/a.js", "import './b.js'; import 'node:fs';")
	write(t, dir+"/b.js", "import './a.js'; import './c0.js';")
	for i := range 15 {
		write(t, fmt.Sprintf("%s/c%d.js", dir, i), fmt.Sprintf("import './c%d.js';", i+1))
	}
	write(t, dir+"/c15.js", "let a a;")
	ds = refused(t, write(t, dir+"/round.js", "import './a.js'; export default {};"))
	require.Len(t, ds, 2)
	for _, d := range ds {
		if d.File == dir+"/a.js" {
			require.Equal(t, "imported by "+dir+"/round.js:1:8", d.Notes[1])
			continue
		}
		require.Len(t, d.Notes, 11)
		require.Equal(t, []string{"imported by " + dir + "/c14.js:1:8", "and so on"}, []string{d.Notes[0], d.Notes[10]})
	}
}

// Packages that have a way of their own for platforms without a module are left to take it.
func TestBuildLetsPackagesTryModulesOfNode(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir+"/node_modules/careful/package.json", `{"name":"careful","version":"1.0.0","main":"index.js"}`)
	write(t, dir+"/node_modules/careful/index.js",
		`let os; try { os = require("node:os"); } catch { os = { cpus: () => [] }; } exports.cores = os.cpus().length;
		 exports.files = () => import("node:fs").catch(() => null);`)
	b, err := bundle.Build(t.Context(), write(t, dir+"/app.js", `import { cores, files } from "careful"; export default { task: async () => [cores, await files()] };`))
	require.NoError(t, err)
	require.Contains(t, b.Code, "cpus")
	require.Empty(t, b.Warnings)
}

func TestBuildTakesPackagesCalledLikeModulesOfNode(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir+"/node_modules/events/package.json", `{"name":"events","version":"3.0.0","main":"index.js"}`)
	write(t, dir+"/node_modules/events/index.js", `exports.EventEmitter = class EventEmitter {};`)
	for _, name := range []string{"events", "events/"} {
		_, err := bundle.Build(t.Context(),
			write(t, dir+"/app.js", `import { EventEmitter } from "`+name+`"; export default { task: () => new EventEmitter() };`))
		require.NoError(t, err, name)
	}
}
