package bundle_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy/bundle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

const handler = "export default { fetch() { return new Response('hi'); } };\n"

// tree writes files by their paths into a new directory named shop.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "shop")
	require.NoError(t, os.Mkdir(dir, 0o755))
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return dir
}

func TestBuildOfADirectory(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files              map[string]string
		worker, source     string
		mode               workers.Mode
		manifest, whatElse string
	}{
		"no manifest": {files: map[string]string{"index.ts": handler, "index.js": "syntax error"}, worker: "shop",
			source: "index.ts"},
		"no manifest, src": {files: map[string]string{"src/index.js": handler, "package.json": "{}"}, worker: "shop",
			source: "src/index.js"},
		"of the source": {files: map[string]string{"index.js": handler, "index.pinwheel.json": `{"mode": "oneshot"}`},
			worker: "shop", source: "index.js", mode: "oneshot"},
		"pinwheel.json": {files: map[string]string{"a.ts": handler,
			"pinwheel.json": `{"name": "x", "main": "./a.ts", "mode": "shared"}`}, worker: "x", source: "a.ts", mode: "shared"},
		"pinwheel.jsonc": {files: map[string]string{"lib/a.ts": handler,
			"pinwheel.jsonc": "{\"main\": \"lib//a.ts\", // c\n}"}, worker: "shop", source: "lib/a.ts"},
		"pinwheel.yaml": {files: map[string]string{"lib/a.mjs": handler,
			"pinwheel.yaml": "main: lib/../lib/a.mjs\nmode: pinned\n"}, worker: "shop", source: "lib/a.mjs", mode: "pinned"},
		"Buntime": {files: map[string]string{"index.ts": handler, "manifest.yaml": "timeout: 5s\nlowMemory: true\n"},
			worker: "shop", source: "index.ts", mode: "oneshot", whatElse: "lowMemory"},
		"wrangler.jsonc": {files: map[string]string{"src/index.ts": handler,
			"wrangler.jsonc": `{"name": "w", "main": "src/index.ts", "observability": {}}`, "package.json": `{"main": "x.js"}`}, worker: "w",
			source: "src/index.ts", whatElse: "observability"},
		"wrangler.json": {files: map[string]string{"src/index.ts": handler, "wrangler.json": `{"name": "w"}`}, worker: "w",
			source: "src/index.ts"},
		"wrangler.toml": {files: map[string]string{"src/index.ts": handler,
			"wrangler.toml": "name = 'w'\nmain = 'src/index.ts'"}, worker: "w", source: "src/index.ts"},
		"package.json": {files: map[string]string{"a.tsx": handler, "package.json": `{"name": "@x/y", "pinwheel": {"main": "a.tsx"}}`},
			worker: "shop", source: "a.tsx"},
		"mode in the source": {files: map[string]string{"index.js": "// @mode persistent\n" + handler,
			"pinwheel.json": `{"lifetime": {"idleMs": "1m"}}`}, worker: "shop", source: "index.js", mode: "persistent"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := tree(t, c.files)
			b, err := bundle.Build(t.Context(), dir)
			require.NoError(t, err)
			require.Equal(t, c.worker, b.Name)
			require.Equal(t, filepath.Join(dir, c.source), b.Source)
			require.Equal(t, c.mode, b.Mode)
			require.Contains(t, b.Code, "new Response")
			require.Contains(t, b.Inputs, filepath.Join(dir, "wrangler.toml"), "a manifest that is new counts")
			require.Contains(t, b.Inputs, filepath.Join(dir, c.source))
			if c.whatElse == "" {
				require.Empty(t, b.Notes)
			} else {
				require.Len(t, b.Notes, 1)
				require.Contains(t, b.Notes[0].String(), "these keys make no difference here: "+c.whatElse)
			}
		})
	}
}

// A directory without a package.json is a project of its own: its source may be deeper than what it imports.
func TestBuildOfADirectoryReadsAllOfIt(t *testing.T) {
	t.Parallel()
	dir := tree(t, map[string]string{"src/index.ts": "import x from '../lib/x.txt';\nexport default { task: () => x };\n",
		"lib/x.txt": "of the library"})
	b, err := bundle.Build(t.Context(), dir)
	require.NoError(t, err)
	require.Contains(t, b.Code, "of the library")
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(dir), "secret.txt"), []byte("x"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "lib", "x.txt"), nil, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "src", "index.ts"),
		[]byte("import x from '../../secret.txt';\nexport default { task: () => x };\n"), 0o600))
	_, err = bundle.Build(t.Context(), dir)
	require.ErrorContains(t, err, "outside of the project")
}

func TestVarsOfADirectoryComeFromTheEnvironment(t *testing.T) {
	t.Setenv("PINWHEEL_TEST_API", "https://api.example")
	dir := tree(t, map[string]string{"index.ts": handler, "pinwheel.json": `{"vars": {"API": "${PINWHEEL_TEST_API}/v1"}}`})
	b, err := bundle.Build(t.Context(), dir)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"API": "https://api.example/v1"}, b.Vars)
	_, err = bundle.Build(t.Context(), dir, dir)
	require.ErrorContains(t, err, "vars.API wants ${PINWHEEL_TEST_API}: the environment is not read with --root", "the author is someone else")
	require.NoError(t, os.Unsetenv("PINWHEEL_TEST_API"))
	_, err = bundle.Build(t.Context(), dir)
	require.ErrorContains(t, err, dir+"/pinwheel.json:1:11: vars.API wants ${PINWHEEL_TEST_API}: the environment of this command has no variable PINWHEEL_TEST_API")
}

func TestBuildRefusesDirectories(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files map[string]string
		want  string // after the path of the directory
	}{
		"nothing": {nil, ": no manifest names the source, and there is none of index.ts, index.js, src/index.ts, src/index.js"},
		"a page":  {map[string]string{"index.html": "<p>"}, "src/index.js. index.html is no source: \"assets\": {\"directory\": \".\"} in a manifest serves the files"},
		"two manifests": {map[string]string{"pinwheel.json": "{}", "wrangler.toml": ""},
			"/wrangler.toml: there are two manifests, this one and "},
		"two that are broken": {map[string]string{"pinwheel.json": "{}", "pinwheel.jsonc": "{"},
			"/pinwheel.jsonc: there are two manifests"},
		"one is a package": {map[string]string{"manifest.yaml": "ttl: 1m", "package.json": `{"pinwheel": {}}`},
			"/package.json: there are two manifests"},
		"one of the source": {map[string]string{"pinwheel.json": "{}", "index.js": handler, "index.pinwheel.json": "{}"},
			"/index.pinwheel.json: there are two manifests"},
		"a misnamed one": {map[string]string{"pinwheel.yml": "", "index.js": handler},
			"/pinwheel.yml: a manifest has another name: pinwheel.yaml"},
		"absolute": {map[string]string{"pinwheel.json": `{"main": "/etc/passwd.js"}`},
			`/pinwheel.json:1:2: main is "/etc/passwd.js": it is a path from the directory of the manifest`},
		"drive": {map[string]string{"wrangler.json": `{"main": "C:/x.js"}`}, `/wrangler.json:1:2: main is "C:/x.js": it is a path from the directory`},
		"backslash": {map[string]string{"pinwheel.json": `{"main": "src\\..\\..\\x.js"}`},
			`: directories are separated by /`},
		"out": {map[string]string{"pinwheel.json": `{"main": "src/../../x.js"}`}, `: it leads out of the directory`},
		"out of Buntime": {map[string]string{"manifest.yaml": "ttl: 1m\nentrypoint: ../index.ts\n"},
			`/manifest.yaml:2:1: main is "../index.ts": it leads out of the directory`},
		"control character": {map[string]string{"pinwheel.json": `{"main": "a\u0000.js"}`},
			`it is a path without control characters`},
		"gone":        {map[string]string{"pinwheel.json": `{"main": "a.js"}`}, `/pinwheel.json:1:2: main is "a.js": there is no such file`},
		"a directory": {map[string]string{"pinwheel.json": `{"main": "a.js"}`, "a.js/x": ""}, `it is a directory`},
		"HTML": {map[string]string{"pinwheel.json": `{"main": "index.html"}`, "index.html": ""},
			`main is "index.html": it is a page: "assets" names the directory`},
		"HTML of Buntime that is gone": {map[string]string{"manifest.yaml": `entrypoint: dist/index.html`, "dist/a": ""},
			`/manifest.yaml:1:1: entrypoint is "dist/index.html": there is no such file`},
		"HTML of Buntime out of it": {map[string]string{"manifest.yaml": `entrypoint: ../index.html`},
			`/manifest.yaml:1:1: assets.directory is "..": it leads out of the directory`},
		"Python": {map[string]string{"wrangler.json": `{"main": "src/entry.py"}`, "src/entry.py": ""},
			`a source ends in one of .js`},
		"two modes": {map[string]string{"manifest.yaml": "ttl: 0\n", "index.ts": "// @mode shared\n" + handler},
			`/manifest.yaml:1:1: mode is "oneshot" here and "shared" in `},
		"100 MB": {map[string]string{"pinwheel.json": strings.Repeat(" ", 100<<20)},
			"/pinwheel.json: the manifest cannot be read: it has 104857600 bytes: at most 524288 are read"},
		"100 MB of package": {map[string]string{"package.json": strings.Repeat(" ", 100<<20)},
			"/package.json: the manifest cannot be read: it has 104857600 bytes"},
		"main of a file": {map[string]string{"index.ts": handler, "index.pinwheel.json": `{"main": "x.ts"}`},
			"/index.pinwheel.json:1:2: main is for the manifest of a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := tree(t, c.files)
			_, err := bundle.Build(t.Context(), dir)
			var se *bundle.SourceError
			require.ErrorAs(t, err, &se)
			text, found := strings.CutPrefix(err.Error(), dir)
			require.True(t, found, err)
			require.Contains(t, text, c.want)
		})
	}
}

func TestBuildRefusesLinksOutOfADirectory(t *testing.T) {
	t.Parallel()
	dir := tree(t, map[string]string{"pinwheel.json": `{"main": "link/x.js"}`})
	outside := tree(t, map[string]string{"x.js": handler, "pinwheel.json": "{}", "index.js": handler})
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "link")))
	_, err := bundle.Build(t.Context(), dir)
	require.ErrorContains(t, err, `main is "link/x.js": a link on it leads out of the directory`)
	_, err = bundle.Build(t.Context(), dir, dir, outside)
	require.ErrorContains(t, err, "a link on it leads out of the directory", "a root is for what is imported")

	require.NoError(t, os.Remove(filepath.Join(dir, "pinwheel.json")))
	require.NoError(t, os.Symlink(filepath.Join(outside, "index.js"), filepath.Join(dir, "index.js")))
	_, err = bundle.Build(t.Context(), dir)
	require.ErrorContains(t, err, dir+"/index.js: it is the source of the directory, and a link on it leads out of the directory")

	require.NoError(t, os.Symlink(filepath.Join(outside, "pinwheel.json"), filepath.Join(dir, "pinwheel.json")))
	_, err = bundle.Build(t.Context(), dir)
	require.ErrorContains(t, err, dir+"/pinwheel.json: the manifest cannot be read: it is outside of the project")
	require.NoError(t, os.Remove(filepath.Join(dir, "pinwheel.json")))
	require.NoError(t, os.Symlink("/dev/zero", filepath.Join(dir, "pinwheel.json")))
	_, err = bundle.Build(t.Context(), dir)
	require.ErrorContains(t, err, dir+"/pinwheel.json: the manifest cannot be read: ")

	inner := tree(t, map[string]string{"src/index.js": handler})
	require.NoError(t, os.Symlink(inner, filepath.Join(outside, "project")))
	b, err := bundle.Build(t.Context(), filepath.Join(outside, "project"))
	require.NoError(t, err, "the directory itself may be a link")
	require.Equal(t, "shop", b.Name)
}

// A page as entrypoint of Buntime's manifest, or index.html without a source, is a site with one page.
func TestBuntimesPageIsASite(t *testing.T) {
	t.Parallel()
	sites := map[string]string{"entrypoint: index.html\n": ".", "ttl: 5m\n": ".", "entrypoint: dist/index.html\n": "dist"}
	for text, dir := range sites {
		root := tree(t, map[string]string{"manifest.yaml": text, dir + "/index.html": "<p>", dir + "/app.js": "1"})
		b, err := bundle.Build(t.Context(), root)
		require.NoError(t, err)
		require.Equal(t, workers.NotFoundSPA, b.Assets.NotFound)
		require.Contains(t, b.Files.List.Files, "/index.html")
		require.NotContains(t, b.Files.List.Files, "/manifest.yaml")
	}
	root := tree(t, map[string]string{"manifest.yaml": "publicRoutes:\n  GET: [/health]\nsecrets: [KEY]\n",
		"index.ts": "// @token KEY\n" + handler, "index.html": ""})
	b, err := bundle.Build(t.Context(), root)
	require.NoError(t, err)
	require.Equal(t, workers.PublicPaths{"GET": {"/health"}}, b.HTTP.Public)
	require.Nil(t, b.Assets)
	require.Empty(t, b.Notes)
	write(t, root+"/index.ts", handler)
	b, err = bundle.Build(t.Context(), root)
	require.NoError(t, err)
	require.Len(t, b.Notes, 1)
	require.Contains(t, b.Notes[0].String(), "manifest.yaml: publicRoutes makes no difference here")
}

func TestUnknownWordsInCommentsAreWarnings(t *testing.T) {
	t.Parallel()
	build := func(source string) (*bundle.Bundle, error) {
		return bundle.Build(t.Context(), write(t, filepath.Join(t.TempDir(), "w.ts"), source))
	}
	b, err := build("#!/usr/bin/env node\n// @ts-check\n/** @jsx h */\n/* @cors x\n// @timeout 5 */\n// @license MIT\n// @acme/shop is a package\n//@mode shared\n" +
		"  // @ai reflective\n// Ask @ada\n// @await-promises\n\n" + handler + "// @token X\n")
	require.NoError(t, err)
	require.Equal(t, workers.Shared, b.Mode)
	require.Len(t, b.Warnings, 2)
	require.Contains(t, b.Warnings[0].String(), "w.ts:9:6: @ai means nothing here: the words are @mode, @concurrent, @timeout, @cors, @cors-credentials, @cors-methods, @token, @enabled, @log-level, @log-request-body, @log-response-body and @websocket")
	require.Contains(t, b.Warnings[1].String(), "w.ts:11:4: @await-promises means nothing here")
	b, err = build(strings.Repeat("// @x y\r\n", 1000) + "// @mode oneshot\n" + handler)
	require.NoError(t, err)
	require.Len(t, b.Warnings, 10)
	require.Equal(t, workers.Oneshot, b.Mode)
	_, err = build("// @concurrent 5\n// @mode turbo\n" + handler)
	require.ErrorContains(t, err, `w.ts:2:10: mode "turbo": it is one of`)
}

func TestNameOf(t *testing.T) {
	t.Parallel()
	dir := tree(t, map[string]string{"a.js": handler, "a.pinwheel.json": `{"name": "other"}`, "b.ts": handler,
		"one/wrangler.toml": "name = 'w'", "two/pinwheel.json": "{", "three/index.js": ""})
	for path, want := range map[string]string{"a.js": "other true", "b.ts": "b true", "one": "w true", "two": "two true",
		"three": "three false", ".": "shop false"} {
		name, one := bundle.NameOf(filepath.Join(dir, path))
		require.Equal(t, want, name+map[bool]string{true: " true", false: " false"}[one], path)
	}
}
