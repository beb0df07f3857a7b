package bundle_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy/bundle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

const built = ".wrangler/deploy/config.json"

func TestBuildOfWhatAFrameworkHasBuilt(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"package.json":              `{"type": "module"}`,
		"wrangler.jsonc":            `{"name": "source", "main": "@astrojs/cloudflare/entrypoints/server", "define": {"A": "1"}}`,
		"src/index.js":              "not JavaScript",
		built:                       `{"configPath": "../../dist/server/wrangler.json", "auxiliaryWorkers": []}`,
		"dist/server/wrangler.json": `{"name": "shop", "main": "entry.mjs", "configPath": "/x", "no_bundle": true, "assets": {"directory": "../client", "binding": "ASSETS"}, "kv_namespaces": [{"binding": "SESSION"}]}`,
		"dist/server/entry.mjs":     `import "cloudflare:workers"; import { handler } from "./chunks/a.mjs"; export default handler;`,
		"dist/server/chunks/a.mjs":  "export const handler = { fetch: () => new Response('built') };",
		"dist/client/index.html":    "<p>",
	}
	dir := tree(t, files)
	b, err := bundle.Build(t.Context(), dir)
	require.NoError(t, err)
	require.Equal(t, "shop", b.Name)
	require.Contains(t, b.Code, "built")
	require.Equal(t, map[string]string{"SESSION": "SESSION"}, b.KV)
	require.Equal(t, []string{"/index.html"}, slices.Sorted(maps.Keys(b.Files.List.Files)))
	require.Equal(t, workers.Assets{Directory: "dist/client", Binding: "ASSETS", Files: b.Files.Hash}, *b.Assets)
	require.Empty(t, b.Warnings, "frameworks import cloudflare:workers for nothing")
	require.Len(t, b.Notes, 1)
	require.Equal(t, filepath.Join(dir, "dist/server/wrangler.json")+": this is the configuration, as the build has written into "+built,
		b.Notes[0].File+": "+b.Notes[0].Text)
	for _, path := range []string{"wrangler.jsonc", built, "dist/server/wrangler.json", "dist/server/entry.mjs"} {
		require.Contains(t, b.Inputs, filepath.Join(dir, path))
	}
	name, one := bundle.NameOf(dir)
	require.Equal(t, "shop", name)
	require.True(t, one)

	// A manifest of Pinwheel's own is not replaced.
	require.NoError(t, os.WriteFile(filepath.Join(dir, "pinwheel.json"), []byte(`{"name": "own", "main": "dist/server/entry.mjs"}`),
		0o600))
	require.NoError(t, os.Remove(filepath.Join(dir, "wrangler.jsonc")))
	b, err = bundle.Build(t.Context(), dir)
	require.NoError(t, err)
	require.Equal(t, "own", b.Name)
}

// A build of files alone has no code, whatever the sources are.
func TestBuildOfFilesThatAFrameworkHasBuilt(t *testing.T) {
	t.Parallel()
	b, err := bundle.Build(t.Context(), tree(t, map[string]string{
		"src/index.js": "not JavaScript", built: `{"configPath": "../../dist/wrangler.json"}`,
		"dist/wrangler.json": `{"name": "site", "assets": {"directory": "."}}`, "dist/.assetsignore": "wrangler.json\n",
		"dist/index.html": "<p>",
	}))
	require.NoError(t, err)
	require.Equal(t, []string{"/index.html"}, slices.Sorted(maps.Keys(b.Files.List.Files)))
}

func TestBuiltConfigurationsThatAreRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{`:  built + ": it is a JSON object whose configPath is the path",
		`{}`: built + ": it is a JSON object whose configPath is the path",
		`{"configPath": "../../../wrangler.json"}`: `configPath is "../../../wrangler.json": it does not lead to a file in the directory`,
		`{"configPath": "/etc/x.json"}`:            `configPath is "/etc/x.json": it does not lead to a file in the directory`,
		`{"configPath": "../../dist/x.toml"}`:      `a configuration that a build has made ends in .json`,
		`{"configPath": "../../gone.json"}`:        `/gone.json, and there is no such file: run the build again`,
		`{"configPath": "../../linked.json"}`:      `/linked.json: the manifest cannot be read: it is outside of the project`,
		`{"configPath": "../../dist/out.json"}`:    `main is "../x.js": it leads out of the directory`,
		`{"configPath": "../../dist/files.json"}`:  `assets.directory is "..": it leads out of the directory`,
	} {
		dir := tree(t, map[string]string{
			"package.json": "{}", "index.js": handler, built: text, "dist/out.json": `{"main": "../../x.js"}`,
			"dist/files.json": `{"assets": {"directory": "../.."}}`,
		})
		require.NoError(t, os.Symlink("/etc/hostname", filepath.Join(dir, "linked.json")))
		_, err := bundle.Build(t.Context(), dir)
		require.ErrorContains(t, err, want, text)
		var se *bundle.SourceError
		require.ErrorAs(t, err, &se, text)
	}
}

func TestFilesLeaveOutTheSource(t *testing.T) {
	t.Parallel()
	b, err := bundle.Build(t.Context(), tree(t, map[string]string{
		"wrangler.json": `{"name": "kit", "main": "out/_worker.js", "assets": {"directory": "out"}}`, "out/_worker.js": handler, "out/index.html": "<p>",
	}))
	require.NoError(t, err)
	require.Equal(t, []string{"/index.html"}, slices.Sorted(maps.Keys(b.Files.List.Files)))
	require.Equal(t, "_worker.js is not served: it is the source of the worker", b.Notes[len(b.Notes)-1].Text)
}
