//go:build templates

package compat_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The packages that create the projects. Wrangler, which create-cloudflare runs, needs a Node.js that many machines do
// not have: it is a package too.
const (
	creator     = "create-cloudflare@2.74.0"
	nodeVersion = "22.23.3"
)

// TestTemplates deploys projects as create-cloudflare makes them, unmodified, and sends each an event. It needs npm and
// its registry, and fails without.
func TestTemplates(t *testing.T) {
	tools := t.TempDir()
	nodePackage := "node-linux-" + npmArch()
	runs(t, tools, nil, "npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", creator, nodePackage+"@"+nodeVersion)
	modules := filepath.Join(tools, "node_modules")
	bin := filepath.Join(modules, nodePackage, "bin")
	settings := []string{
		"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH"), "CI=true", "CREATE_CLOUDFLARE_TELEMETRY_DISABLED=1", "WRANGLER_SEND_METRICS=false",
	}
	f := startFleet(t)
	for _, c := range []struct{ template, lang, path, want string }{
		{"hello-world", "ts", "/", "200 Hello World!"},
		{"hello-world", "js", "/", "200 Hello World!"},
		{"scheduled", "ts", "/", "200 To test the scheduled handler, "},
		{"scheduled", "js", "/", "200 To test the scheduled handler, "},
		{"common", "ts", "/api/todos/5", "200 Todo #5"},
		{"common", "js", "/api/todos/5", "200 Todo #5"},
		{"openapi", "ts", "/api/tasks", `200 {"success":true,"tasks":[{"name":"Clean my room"`},
	} {
		name := c.template + "-" + c.lang
		t.Run(name, func(t *testing.T) {
			parent := t.TempDir()
			runs(t, parent, settings, filepath.Join(bin, "node"), filepath.Join(modules, "create-cloudflare", "dist", "cli.js"),
				name, "--type", c.template, "--lang", c.lang, "--no-deploy", "--no-git", "--no-agents", "--accept-defaults")
			dir := filepath.Join(parent, name)
			require.Contains(t, f.Deploy(t, dir, "--owner", "npm"), "deployed npm/"+name+" version 1-")
			w := &worker{f, name}
			require.Contains(t, w.get(t, c.path).text(), c.want)
			// A schedule of theirs asks a host that is not there.
			require.Zero(t, f.Pinwheel("workers", "rm", "npm/"+name, "--yes").Code)
		})
	}
}

// runs runs a command in dir, with settings added to the environment.
func runs(t *testing.T, dir string, settings []string, command string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, command, args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = dir, append(os.Environ(), settings...), time.Second
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s: %s", command, out)
}

// TestInstall deploys a project with --install by each package manager, from a lock file that it made itself.
func TestInstall(t *testing.T) {
	f := startFleet(t)
	base := os.Getenv("PATH")
	registry, err := exec.CommandContext(t.Context(), "npm", "config", "get", "registry").Output()
	require.NoError(t, err)
	t.Setenv("YARN_NPM_REGISTRY_SERVER", strings.TrimSpace(string(registry))) // Yarn 4 does not ask npm's configuration
	t.Setenv("YARN_ENABLE_TELEMETRY", "0")
	for _, c := range []struct {
		name, install string // the package of the package manager
		bin           string // below node_modules
		lock          []string
		files         map[string]string
	}{
		{"npm", "", "", []string{"npm", "install", "--package-lock-only", "--ignore-scripts"}, nil},
		{"pnpm", "pnpm@10.34.9", ".bin", []string{"pnpm", "install", "--lockfile-only", "--ignore-scripts"}, nil},
		{"yarn1", "yarn@1.22.22", ".bin", []string{"yarn", "install", "--ignore-scripts"}, nil},
		{"yarn4", "@yarnpkg/cli-dist@4.18.1", ".bin", []string{"yarn", "install", "--no-immutable", "--mode=skip-build"}, map[string]string{"yarn.lock": "", ".yarnrc.yml": "nodeLinker: node-modules\n"}},
		{"bun", "@oven/bun-linux-" + npmArch() + "@1.4.5", "@oven/bun-linux-" + npmArch() + "/bin", []string{"bun", "install", "--ignore-scripts"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("PATH", base)
			if c.install != "" {
				tools := t.TempDir()
				runs(t, tools, nil, "npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", c.install)
				t.Setenv("PATH", filepath.Join(tools, "node_modules", c.bin)+string(os.PathListSeparator)+base)
			}
			dir := filepath.Join(t.TempDir(), "with-"+c.name)
			require.NoError(t, os.Mkdir(dir, 0o755))
			for name, text := range map[string]string{
				"package.json": `{"name": "p", "version": "1.0.0", "dependencies": {"nanoid": "5.1.16"}, "scripts": {"postinstall": "touch ran"}}`,
				"index.js":     "import { nanoid } from 'nanoid';\nexport default { fetch: () => new Response(String(nanoid(7).length)) };\n",
				".npmrc":       "ignore-scripts=false\n",
			} {
				require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
			}
			for name, text := range c.files {
				require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
			}
			runs(t, dir, nil, c.lock[0], c.lock[1:]...)
			require.NoError(t, os.RemoveAll(filepath.Join(dir, "node_modules")))
			f.Deploy(t, dir, "--owner", "npm", "--install")
			require.Equal(t, "200 7", (&worker{f, "with-" + c.name}).get(t, "/").text())
			require.NoFileExists(t, filepath.Join(dir, "ran"))
		})
	}
}

// npmArch is the machine's architecture as packages name it.
func npmArch() string {
	if runtime.GOARCH == "amd64" {
		return "x64"
	}
	return runtime.GOARCH
}
