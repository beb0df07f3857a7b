package bundle_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy/bundle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/lib/sourcemap"
)

func write(t testing.TB, path, text string) string {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// refused builds a source that has faults and returns them.
func refused(t *testing.T, path string) []bundle.Diagnostic {
	t.Helper()
	_, err := bundle.Build(t.Context(), path)
	var se *bundle.SourceError
	require.ErrorAs(t, err, &se)
	for _, d := range se.Diagnostics {
		require.Contains(t, err.Error(), d.String())
	}
	return se.Diagnostics
}

func TestBuildTypeScriptWithImports(t *testing.T) {
	t.Parallel()
	b, err := bundle.Build(t.Context(), "testdata/hello.ts")
	require.NoError(t, err)
	require.Equal(t, "hello.js", b.File)
	require.Equal(t, workers.Pinned, b.Mode)
	require.Contains(t, b.Code, "name.trim()")
	require.NotContains(t, b.Code, "interface")
	require.NotContains(t, b.Code, "import ")
	require.NotContains(t, b.Code, "unused", "unused code is removed")
	require.Empty(t, b.Warnings)

	abs := func(p string) string { a, err := filepath.Abs(p); require.NoError(t, err); return a }
	require.Equal(t, []string{abs("testdata/hello.ts"), abs("testdata/lib/greet.ts"), abs("testdata/hello.pinwheel.json")},
		b.Inputs)
	for _, in := range b.Inputs {
		require.NotContains(t, b.Code+string(b.SourceMap), filepath.Dir(in), "a path of this machine would be in every hash")
	}

	m, err := sourcemap.Parse(b.SourceMap)
	require.NoError(t, err)
	for i, line := range strings.Split(b.Code, "\n") {
		if c := strings.Index(line, "name.trim()"); c >= 0 {
			p, ok := m.Position(i+1, c+1)
			require.True(t, ok)
			require.Equal(t, "lib/greet.ts:2:10", p.String())
		}
	}
}

func TestBuildTakesPackagesFromNodeModules(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir+"/node_modules/shapes/package.json",
		`{"name":"shapes","version":"1.0.0","exports":{".":{"node":"./node.js","worker":"./worker.js","default":"./node.js"}}}`)
	write(t, dir+"/node_modules/shapes/worker.js", `export const area = (r) => r * r * 3;`)
	write(t, dir+"/node_modules/shapes/node.js", `import "node:fs"; export const area = () => 0;`)
	write(t, dir+"/node_modules/old/package.json", `{"name":"old","version":"1.0.0","main":"index.js"}`)
	write(t, dir+"/node_modules/old/index.js", `exports.double = function (n) { return process.env.NODE_ENV === "production" ? 2 * n : 0; };`)
	_, err := bundle.Build(t.Context(), write(t, dir+"/app.js",
		`import { area } from "shapes"; import { double } from "old"; import rates from "./rates.csv";
		 export default { task: () => double(area(2)) + rates.length };`))
	require.Error(t, err, "rates.csv is not there")
	write(t, dir+"/rates.csv", "a,b\n")
	b, err := bundle.Build(t.Context(), dir+"/app.js")
	require.NoError(t, err)
	require.Contains(t, b.Code, "r * r * 3")
	require.NotContains(t, b.Code, "process.env")
	require.Len(t, b.Inputs, 5)
}

// The maps of files that packages have for browsers are followed: a file for another, a package for another, and
// nothing for a module of Node.
func TestBuildFollowsBrowserMaps(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pkg := filepath.Join(dir, "node_modules", "sdk")
	write(t, filepath.Join(pkg, "package.json"), `{"name": "sdk", "main": "index.js", "browser": {"./node.js": "./web.js", "only-node": "only-web", "fs": false, "node:http": false}}`)
	write(t, filepath.Join(pkg, "index.js"), `const fs = require("fs"); require("node:http"); module.exports = [require("./node.js"), require("only-node"), Object.keys(fs).length];`)
	write(t, filepath.Join(pkg, "node.js"), `module.exports = require("net");`)
	write(t, filepath.Join(pkg, "web.js"), `module.exports = "mapped file";`)
	write(t, filepath.Join(dir, "node_modules", "only-web", "package.json"), `{"name": "only-web", "main": "index.js"}`)
	write(t, filepath.Join(dir, "node_modules", "only-web", "index.js"), `module.exports = "mapped package";`)
	b, err := bundle.Build(t.Context(), write(t, filepath.Join(dir, "w.js"), `import sdk from "sdk"; export default { task: () => sdk }`))
	require.NoError(t, err)
	require.Contains(t, b.Code, "mapped file")
	require.Contains(t, b.Code, "mapped package")
	require.NotContains(t, b.Code, `"net"`)

	// An import of a module of Node by the worker itself is refused as ever.
	ds := refused(t, write(t, filepath.Join(dir, "bad.js"), `import "fs"; export default { task() {} }`))
	require.Contains(t, ds[0].Text, `import of "fs": a worker has Node's modules if its manifest says`)
}

// A file or a package that the map says false of is an empty module, whether it is there or not.
func TestBuildEmptiesModulesOfBrowserMaps(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pkg := filepath.Join(dir, "node_modules", "sdk")
	write(t, filepath.Join(pkg, "package.json"), `{"name": "sdk", "main": "lib/index.js", "browser": {"./lib/there.js": false,
		"./gone.js": false, "./lib/dir/index.js": false, "./lib/bare": false, "optional": false, "missing": false, "net": false}}`)
	write(t, filepath.Join(pkg, "lib/index.js"), `import { colors } from "./there.js"; import * as optional from "optional";
		import { nothing } from "missing"; import "./bare"; import "net";
		export default [colors, require("./there"), require("../gone"), require("./dir"), Object.keys(optional), nothing];`)
	write(t, filepath.Join(pkg, "lib/there.js"), `module.exports = require("node:util").inspect;`)
	write(t, filepath.Join(pkg, "lib/dir/index.js"), `module.exports = require("fs");`)
	write(t, filepath.Join(dir, "node_modules", "optional", "package.json"), `{"name": "optional", "main": "index.js"}`)
	write(t, filepath.Join(dir, "node_modules", "optional", "index.js"), `module.exports = "for others";`)
	write(t, filepath.Join(dir, "node_modules", "off", "package.json"), `{"main": "./off.js", "browser": {"./off.js": false}}`)
	write(t, filepath.Join(dir, "node_modules", "off", "off.js"), `module.exports = require("node:fs");`)
	for _, text := range []string{
		`import sdk from "sdk"; export default { task: () => sdk }`, `import off from "off"; export default { task: () => off }`,
		`import there from "sdk/lib/there.js"; export default { task: () => there }`,
	} {
		_, err := bundle.Build(t.Context(), write(t, filepath.Join(dir, "w.js"), text))
		require.NoError(t, err, text)
	}
	// It is one for the package that says so only.
	b, err := bundle.Build(t.Context(), write(t, filepath.Join(dir, "w.js"),
		`import sdk from "sdk"; import optional from "optional"; export default { task: () => [sdk, optional] }`))
	require.NoError(t, err)
	require.Contains(t, b.Code, "for others")
}

func TestBuildKeepsTopLevelAwait(t *testing.T) {
	t.Parallel()
	b, err := bundle.Build(t.Context(), "testdata/tla.mjs")
	require.NoError(t, err)
	require.Contains(t, b.Code, "await Promise.resolve")
	require.Equal(t, "tla.js", b.File)
}

func TestBuildIsReproducible(t *testing.T) {
	t.Parallel()
	hash := func(dir string) string {
		write(t, dir+"/lib/greet.ts", "export const greet = (n: string) => n;")
		b, err := bundle.Build(t.Context(), write(t, dir+"/w.ts", `import { greet } from "./lib/greet"; export default { task: greet };`))
		require.NoError(t, err)
		h, err := b.Hash()
		require.NoError(t, err)
		return h
	}
	require.Equal(t, hash(t.TempDir()), hash(t.TempDir()))
}

func TestBuildNamesTheSyntaxError(t *testing.T) {
	t.Parallel()
	ds := refused(t, "testdata/syntax.js")
	require.Len(t, ds, 1)
	require.Equal(t, "testdata/syntax.js:2:36: Expected \")\" but found \"oops\"\n"+
		"    \tfetch() { return new Response(\"ü\" oops); },\n"+
		"    \t                                  ^", ds[0].String())
}

func TestBuildListsEveryImportThatCannotBe(t *testing.T) {
	t.Parallel()
	ds := refused(t, "testdata/imports.ts")
	texts := make([]string, len(ds))
	for i, d := range ds {
		texts[i], _, _ = strings.Cut(d.String(), "\n")
		require.NotContains(t, d.String(), "esbuild")
		require.NotContains(t, d.String(), "api.")
		require.NotContains(t, d.String(), "external")
	}
	require.ElementsMatch(t, []string{
		`testdata/imports.ts:1:30: import of "node:fs": a worker has Node's modules if its manifest says "node": true (wrangler's: the flag nodejs_compat)`,
		`testdata/imports.ts:2:18: import of "path": a worker has Node's modules if its manifest says "node": true (wrangler's: the flag nodejs_compat)`,
		`testdata/imports.ts:4:21: Could not resolve "./nowhere"`,
		`testdata/imports.ts:5:20: import of "https://example.com/mod.js": a worker cannot import from a URL`,
		`testdata/imports.ts:6:18: Could not resolve "left-pad"`,
	}, texts)
}

func TestBuildRefusesWhatIsNoSource(t *testing.T) {
	t.Parallel()
	_, err := bundle.Build(t.Context(), "testdata/syntax.css")
	require.EqualError(t, err, "testdata/syntax.css: a worker is a directory, or a file that ends in one of .js .mjs .ts .mts .jsx .tsx")
	_, err = bundle.Build(t.Context(), "testdata/gone.js")
	require.ErrorIs(t, err, os.ErrNotExist)
	require.False(t, bundle.IsSource("types.d.ts"))
}

func TestBuildRefusesABundleThatIsTooLarge(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir+"/data.js", "export default '"+strings.Repeat("x", bundle.MaxBundle)+"';")
	_, err := bundle.Build(t.Context(), write(t, dir+"/big.js", `import d from "./data.js"; export default { task: () => d };`))
	require.ErrorContains(t, err, "at most 10485760 are allowed; the largest of its files are data.js (10485")
}

func TestBuildStopsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := bundle.Build(ctx, "testdata/hello.ts")
	require.ErrorIs(t, err, context.Canceled)
}

func TestBuildListsFaultsOfSourceAndManifestTogether(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir+"/w.pinwheel.json", `{"var": {}}`)
	path := write(t, dir+"/w.js", "let a a;")
	ds := refused(t, path)
	require.Len(t, ds, 2)
	require.Equal(t, path, ds[0].File)
	require.Equal(t, dir+"/w.pinwheel.json", ds[1].File)
}

func TestMagicComment(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for source, want := range map[string]string{
		"// @mode pinned\nexport default {};":                                     "",
		"#!/usr/bin/env node\n/* a\n b */\n\n// hi\n  //@mode pinned\nexport {};": "",
		"export default {};\n// @mode turbo":                                      "",
		"/* @mode turbo\n// @mode turbo\n*/ export default {};":                   "",
		"// ok\n// @mode turbo\nexport default {};":                               `:2:10: mode "turbo": it is one of pinned`,
		"// @concurrent 0\nexport default {};":                                    `:1:16: @concurrent is "0": it is true, false (one at a time) or a number from 1 to 100000`,
	} {
		path := write(t, dir+"/m.js", source)
		_, err := bundle.Build(t.Context(), path)
		if want == "" {
			require.NoError(t, err, source)
		} else {
			require.ErrorContains(t, err, path+want)
		}
	}
}

// How many events may run at once can stand in the source, as in Hoody.
func TestConcurrentComment(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]int{"// @concurrent false\n": 1, "// @concurrent true\n": 0,
		"// @mode shared\n// @concurrent 12\n": 12, "// @concurrent\n": 0} {
		b, err := bundle.Build(t.Context(), write(t, t.TempDir()+"/m.js", source+"export default { fetch() {} };"))
		require.NoError(t, err)
		require.Equal(t, want, b.Concurrency, source)
		require.Empty(t, b.Warnings)
	}
	dir := t.TempDir()
	write(t, dir+"/m.pinwheel.json", `{"concurrency": 3}`)
	_, err := bundle.Build(t.Context(), write(t, dir+"/m.js", "// @concurrent 2\nexport default { fetch() {} };"))
	require.ErrorContains(t, err, `m.pinwheel.json:1:2: concurrency is 3 here and 2 in `)
	_, err = bundle.Build(t.Context(), write(t, dir+"/m.js", "// @concurrent 3\nexport default { fetch() {} };"))
	require.NoError(t, err)
}

// What Hoody says in comments means the same here, as far as there is such a thing.
func TestWordsInComments(t *testing.T) {
	t.Parallel()
	build := func(comments, manifest string) (*bundle.Bundle, error) {
		dir := t.TempDir()
		if manifest != "" {
			write(t, dir+"/m.pinwheel.json", manifest)
		}
		return bundle.Build(t.Context(), write(t, dir+"/m.js", comments+"\nexport default { fetch() {} };"))
	}
	b, err := build("// @mode worker\n// @timeout 5000\n// @cors https://a.example,https://b.example:8443\n// @cors-credentials true\n// @cors-methods GET,POST\n// @token KEY", `{"secrets": ["OTHER"], "http": {"public": ["/health"]}}`)
	require.NoError(t, err)
	require.Equal(t, workers.Persistent, b.Mode)
	require.Equal(t, workers.Millis(5*time.Second), b.Limits.Wall)
	require.Equal(t, []string{"OTHER", "KEY"}, b.Secrets)
	require.Equal(t, &workers.HTTP{
		Auth: "KEY", Public: workers.PublicPaths{workers.AnyMethod: {"/health"}},
		CORS: &workers.CORS{
			Origins: []string{"https://a.example", "https://b.example:8443"}, Methods: []string{"GET", "POST"},
			Credentials: true},
	}, b.HTTP)
	b, err = build("// @mode serverless\n// @timeout 2m\n// @cors reflective\n// @cors-credentials\n// @token KEY", `{"mode": "oneshot", "limits": {"wallMs": 120000}, "secrets": ["KEY"], "http": {"auth": "KEY"}}`)
	require.NoError(t, err, "what both say alike")
	require.Equal(t, []any{workers.Oneshot, []string{"KEY"}, []string{"reflective"}},
		[]any{b.Mode, b.Secrets, b.HTTP.CORS.Origins})
	require.Empty(t, b.Warnings, "@cors-credentials without a value says nothing")
	for _, c := range [][3]string{
		{"// @cors reflective\n// @cors-credentials true", "", "m.js:1:10: pages of every site may send requests with the cookies"},
		{"", `{"http": {"cors": {"origins": ["reflective"], "credentials": true}}}`, "m.pinwheel.json:1:11: pages of every site may send requests with the cookies"},
		{"// @cors https://a.example\n// @cors-credentials true", "", ""},
		{"", `{"http": {"cors": "reflective"}}`, ""},
	} {
		b, err = build(c[0], c[1])
		require.NoError(t, err)
		if c[2] == "" {
			require.Empty(t, b.Warnings, c)
			continue
		}
		require.Len(t, b.Warnings, 1, c)
		require.Contains(t, b.Warnings[0].String(), c[2])
	}
	b, err = build("// @mode worker\n// @websocket\n// @enabled false\n// @log-level full\n// @log-request-body true\n// @log-response-body false", `{"http": {"enabled": false}}`)
	require.NoError(t, err)
	no := false
	require.Equal(t, &workers.HTTP{Enabled: &no, Log: &workers.RequestLog{Level: workers.RequestsFull, RequestBody: true}},
		b.HTTP)
	require.Empty(t, b.Warnings)
	_, err = build("// @websocket for the chat", `{"mode": "persistent"}`)
	require.NoError(t, err, "the manifest says the mode")
	_, err = build("// @websocket false", "")
	require.NoError(t, err)
	b, err = build("", `{"http": {"log": "minimal"}}`)
	require.NoError(t, err)
	require.Equal(t, &workers.RequestLog{Level: workers.RequestsMinimal}, b.HTTP.Log)
	for _, wrong := range []struct{ comments, manifest, says string }{
		{"// @websocket", "", `m.js:1:4: @websocket is for a worker whose context stays: // @mode persistent`},
		{"//\n// @websocket", `{"mode": "shared"}`, `m.js:2:4: @websocket is for a worker`},
		{"// @enabled no", "", `m.js:1:13: @enabled is "no": it is true or false`},
		{"// @enabled true", `{"http": {"enabled": false}}`, `m.pinwheel.json:1:11: http.enabled is false here and true in `},
		{"// @log-level debug", "", `m.js:1:15: @log-level is "debug": it is none, minimal, standard or full`},
		{"// @log-request-body 1", "", `@log-request-body is "1": it is true or false`},
		{"// @log-level full", `{"http": {"log": "none"}}`, `m.pinwheel.json:1:11: http.log is here, and @log-… in `},
		{"", `{"http": {"log": {"level": "all"}}}`, `m.pinwheel.json:1:19: http.log.level is "all": it is one of none, minimal, standard, full`},
		{"// @timeout -1", "", `m.js:1:13: @timeout is "-1": it is a number of milliseconds from 1 to 900000, a duration like 30s, or 0 for the longest; every run has a limit`},
		{"// @timeout 16m", "", `m.js:1:13: @timeout is "16m"`},
		{"// @timeout soon", "", `m.js:1:13: @timeout is "soon"`},
		{"// @cors shop.example", "", `m.js:1:10: http.cors.origins[0] is "shop.example"`},
		{"// @cors reflective\n// @cors none", "", `m.js:2:10: @cors stands twice`},
		{"//\n// @cors-methods GET,", "", `m.js:2:18: http.cors.origins has 0`}, {"// @cors none\n// @cors-methods GET,", "",
			`m.js:1:10: http.cors.methods`},
		{"// @cors *\n// @cors-credentials yes", "", `m.js:2:22: @cors-credentials is "yes": it is true or false`},
		{"// @token my-key", "", `m.js:1:11: @token is the name of a secret`},
		{"// @token KEY", `{"vars": {"KEY": "x"}, "plain": ["KEY"]}`, `m.pinwheel.json:1:`},
		{"// @token KEY", `{"http": {"auth": "OTHER"}, "secrets": ["OTHER"]}`, `m.pinwheel.json:1:11: http.auth is "OTHER" here and "KEY" in `},
		{"// @cors none", `{"http": {"cors": "reflective"}}`, `m.pinwheel.json:1:11: http.cors is here, and @cors in `},
		{"// @timeout 5s", `{"limits": {"wallMs": 1}}`, `m.pinwheel.json:1:13: limits.wallMs is 1ms here and 5s in `},
	} {
		_, err := build(wrong.comments, wrong.manifest)
		require.ErrorContains(t, err, wrong.says, wrong.comments)
	}
}

// A package whose files for workerd presume what a worker does not have gives those for worker and browser. Others give
// those for workerd as before, and the deploy says of which package it took others.
func TestBuildTakesFilesForBrowsersWhereThoseForWorkerdWantNode(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	modules := filepath.Join(dir, "node_modules")
	pkg := func(name, exports string, files map[string]string) {
		write(t, filepath.Join(modules, name, "package.json"), `{"name": "`+name+`", `+exports+`}`)
		for file, text := range files {
			write(t, filepath.Join(modules, name, file), text)
		}
	}
	pkg("@auth/utils", `"exports": {"./password": {"workerd": "./node.js", "default": "./web.js"}}`, map[string]string{
		"node.js": `export { scrypt } from "node:crypto";`, "web.js": `export const scrypt = "scrypt of the web";`})
	pkg("auth", `"main": "index.js"`, map[string]string{"index.js": `export { scrypt } from "@auth/utils/password";`})
	pkg("inner", `"main": "index.js", "imports": {"#socket": {"workerd": "./cf.js", "browser": "./web.js"}}`,
		map[string]string{"index.js": `export { default } from "#socket";`,
			"cf.js": `import { EmailMessage } from "cloudflare:email"; export default EmailMessage;`, "web.js": `export default "no socket";`})
	pkg("outer", `"exports": {"workerd": "./cf.js", "worker": "./web.js"}`, map[string]string{
		"cf.js": `export { readFileSync as read } from "presumes-node";`, "web.js": `export const read = "read by fetch";`})
	pkg("presumes-node", `"main": "index.js"`, map[string]string{"index.js": `module.exports = require("fs");`})
	pkg("fine", `"exports": {"workerd": "./cf.js", "browser": "./web.js"}`, map[string]string{
		"cf.js": `export default "fine for workerd";`, "web.js": `export default "fine for browsers";`})
	pkg("heavy", `"exports": {"workerd": "./cf.js", "browser": "./web.js"}`, map[string]string{
		"cf.js": `import m from "./m.wasm"; export default m;`, "web.js": `export default "without wasm";`,
		"m.wasm": emptyWasm})
	b, err := bundle.Build(t.Context(), write(t, filepath.Join(dir, "w.js"), `import { scrypt } from "auth"; import inner from "inner";
		import { read } from "outer"; import fine from "fine"; import heavy from "heavy";
		export default { task: () => [scrypt, inner, read, fine, heavy] }`))
	require.NoError(t, err)
	for _, text := range []string{
		"scrypt of the web", "no socket", "read by fetch", "fine for workerd", `from "pinwheel:wasm"`,
	} {
		require.Contains(t, b.Code, text)
	}
	var notes []string
	for _, n := range b.Notes {
		notes = append(notes, n.Text)
	}
	const took = ": its files for worker and browser are bundled, because those for workerd import "
	require.ElementsMatch(t, []string{
		`package @auth/utils` + took + `"node:crypto", which a worker does not have`,
		`package inner` + took + `"cloudflare:email", which a worker does not have`,
		`package outer` + took + `"node:fs", which a worker does not have`,
	}, notes)

	// Where the others do not help either, the deploy says what it says of a package without a choice.
	pkg("node-only", `"exports": {"workerd": "./cf.js", "browser": "./web.js"}`, map[string]string{
		"cf.js": `import "node:net";`, "web.js": `import "node:dns";`})
	ds := refused(t, write(t, filepath.Join(dir, "bad.js"), `import "node-only"; export default { task() {} }`))
	require.Len(t, ds, 1)
	require.Contains(t, ds[0].Text, `import of "node:net": a worker has Node's modules if its manifest says`)
}

// An import of a .bin file is an ArrayBuffer, and rules of wrangler say what other files are.
func TestBuildImportsDataAndTexts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir+"/wrangler.jsonc", `{"name": "w", "main": "w.js", "rules": [{"type": "Text", "globs": ["**/*.glsl"]},
		{"type": "Data", "globs": ["**/*.dat"]}]}`)
	write(t, dir+"/a.bin", "\x00\x01")
	write(t, dir+"/b.dat", "\x02\x03")
	write(t, dir+"/c.glsl", "void main() {}")
	write(t, dir+"/w.js", `import a from "./a.bin"; import b from "./b.dat"; import c from "./c.glsl"; import page from "./p.html";
		import same from "./a.bin" with { type: "bytes" };
		export default { task: () => [a, b, c, page, same] };`)
	write(t, dir+"/p.html", "<p>")
	b, err := bundle.Build(t.Context(), dir)
	require.NoError(t, err)
	for _, text := range []string{`__toBinary("AAE=")`, `__toBinary("AgM=")`, `"void main() {}"`, `"<p>"`,
		"a_default2 = a_default.buffer"} {
		require.Contains(t, b.Code, text)
	}
	require.Contains(t, b.Inputs, filepath.Join(dir, "a.bin"))
	ds := refused(t, write(t, dir+"/gone.js", `import gone from "./gone.bin"; export default { task: () => gone };`))
	require.Contains(t, ds[0].Text, `Could not resolve "./gone.bin"`)
}
