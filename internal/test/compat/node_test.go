package compat_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
)

// A package that tries to import a module of Node uses its fallback when the worker runs.
func TestPackagesMayTryModulesOfNode(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"node_modules/careful/package.json": `{"name":"careful","version":"1.0.0","main":"index.js"}`,
		"node_modules/careful/index.js": `let os; try { os = require("node:os"); } catch { os = { cpus: () => [1, 2] }; } exports.cores = os.cpus().length;
			exports.files = () => import("node:fs").catch((error) => error.name);`,
		"app.js": `import { cores, files } from "careful"; export default { fetch: async () => Response.json([cores, await files()]) };`,
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	f := fleettest.Start(t)
	f.Deploy(t, filepath.Join(dir, "app.js"), "--owner", "dev")
	require.Equal(t, `[2,"TypeError"]`, f.Pinwheel("send", "fetch", "dev/app").Out)
}
