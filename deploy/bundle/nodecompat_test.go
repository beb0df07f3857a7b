package bundle_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy/bundle"
)

// With "node": true a bundle begins with the runtime's module, and has Node's modules by it.
func TestNodesModulesInABundle(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"app.pinwheel.json":                  `{"node": true}`,
		"package.json":                       `{"name": "app"}`,
		"node_modules/events/package.json":   `{"name": "events", "main": "index.js"}`,
		"node_modules/events/index.js":       `module.exports = "events as a package";`,
		"node_modules/readline/package.json": `{"name": "readline", "main": "index.js"}`,
		"node_modules/readline/index.js":     `module.exports = "readline as a package";`,
		"node_modules/reader/package.json":   `{"name": "reader", "main": "index.js", "browser": {"fs": false, "dgram": "./web.js"}}`,
		"node_modules/reader/index.js":       `module.exports = [require("fs"), require("dgram"), require("node:fs")];`,
		"node_modules/reader/web.js":         `module.exports = "dgram for browsers";`,
		"node_modules/test/package.json":     `{"name": "test", "main": "index.js"}`,
		"node_modules/test/index.js":         `module.exports = "test as a package";`,
	} {
		write(t, filepath.Join(dir, filepath.FromSlash(name)), text)
	}
	build := func(text string) (string, error) {
		b, err := bundle.Build(t.Context(), write(t, dir+"/app.js", text+" export default { task: () => it };"))
		if err != nil {
			return "", err
		}
		require.Empty(t, b.Warnings)
		return b.Code, nil
	}
	for text, want := range map[string]string{
		`import it from "node:events";`:   `builtin("events")`,
		`import it from "events";`:        `builtin("events")`,
		`import it from "events/";`:       "events as a package",
		`const it = require("util");`:     `builtin("util")`,
		`import it from "fs/promises";`:   `builtin("fs/promises")`,
		`import it from "readline";`:      "readline as a package",
		`import it from "node:readline";`: `builtin("readline")`,
		`import it from "zlib";`:          `builtin("zlib")`,
		`import it from "reader";`:        "dgram for browsers",
		`import it from "test";`:          "test as a package",
		`import it from "node:test";`:     `builtin("test")`,
		`import "node:process"; let it;`:  nodeBanner,
	} {
		code, err := build(text)
		require.NoError(t, err, text)
		require.True(t, strings.HasPrefix(code, nodeBanner+"\n"), code)
		require.Contains(t, code, want, text)
		require.True(t, bundle.ImportsNode(code))
		require.False(t, bundle.ImportsSockets(code))
	}
	for _, name := range []string{"net", "node:net", "tls", "node:tls", "dns", "node:dns/promises"} {
		code, err := build(`import it from "` + name + `";`)
		require.NoError(t, err)
		require.True(t, bundle.ImportsSockets(code), code)
	}
	code, err := build(`import it from "reader";`)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(code, `builtin("fs")`), "that of node:fs alone: the package has none for browsers")
	for text, want := range map[string]string{
		`import it from "node:nonesuch";`: `import of "node:nonesuch"`,
		`import it from "pinwheel:node";`: `Could not resolve "pinwheel:node"`,
	} {
		_, err := build(text)
		require.ErrorContains(t, err, want)
	}
	require.NoError(t, os.Remove(dir+"/app.pinwheel.json"))
	code, err = build(`const it = 1;`)
	require.NoError(t, err)
	require.False(t, bundle.ImportsNode(code))
}

const nodeBanner = `import "pinwheel:node";`

// The bundler and the runtime know the same modules.
func TestModulesOfNodeAreThere(t *testing.T) {
	t.Parallel()
	start, err := os.ReadFile("../../isolates/js/node/start.js")
	require.NoError(t, err)
	bundler, err := os.ReadFile("nodecompat.go")
	require.NoError(t, err)
	_, list, _ := strings.Cut(string(bundler), "var nodeBuiltins = []string{")
	list, _, _ = strings.Cut(list, "}")
	_, there, _ := strings.Cut(string(start), "const there = {")
	_, members, _ := strings.Cut(there, "const members = {")
	there, _, _ = strings.Cut(there, "}")
	members, _, _ = strings.Cut(members, "};")
	names := regexp.MustCompile(`(\w+): true`).FindAllStringSubmatch(there, -1)
	names = append(names, regexp.MustCompile(`"?([\w/]+)"?: \[`).FindAllStringSubmatch(members, -1)...)
	var have, want []string
	for _, m := range names {
		have = append(have, m[1])
	}
	for _, m := range regexp.MustCompile(`"([^"]+)"`).FindAllStringSubmatch(list, -1) {
		want = append(want, m[1])
	}
	require.ElementsMatch(t, want, have)
	require.Greater(t, len(want), 25)
}
