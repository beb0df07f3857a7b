//go:build templates

package compat_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
)

// The packages that create the projects. Wrangler, which create-cloudflare runs, needs a Node.js that many machines do
// not have: it is a package too.
const (
	creator     = "create-cloudflare@2.74.0"
	svelte      = "sv@0.17.1"
	nodeVersion = "22.23.3"
)

// templates has the tools that create and build projects, and a fleet to deploy them to.
type templates struct {
	*fleettest.Fleet
	modules  string // node_modules with the tools
	node     string
	settings []string
}

// probe is a request to a worker. want is the status of its answer and, after a space, a text that the body contains.
type probe struct{ method, path, body, want string }

// TestTemplates deploys projects as create-cloudflare makes them, unmodified, and projects of frameworks with their
// adapters for Cloudflare. It needs npm and its registry, and fails without.
func TestTemplates(t *testing.T) {
	tools := t.TempDir()
	nodePackage := "node-linux-" + npmArch()
	runs(t, tools, nil, "npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", creator,
		svelte, nodePackage+"@"+nodeVersion)
	x := &templates{modules: filepath.Join(tools, "node_modules")}
	bin := filepath.Join(x.modules, nodePackage, "bin")
	x.node = filepath.Join(bin, "node")
	x.settings = []string{
		"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH"), "CI=true",
		"CREATE_CLOUDFLARE_TELEMETRY_DISABLED=1", "WRANGLER_SEND_METRICS=false", "ASTRO_TELEMETRY_DISABLED=1",
		"CLOUDFLARE_CF_FETCH_ENABLED=false",
		"npm_config_yes=true", "npm_config_prefer_offline=true", "npm_config_audit=false", "npm_config_fund=false",
	}
	x.Fleet = fleettest.Start(t, func(c *config.Config) { c.HTTPAddr, c.HTTPPaths = "127.0.0.1:0", "npm" })
	t.Run("frameworks", x.frameworks)
	t.Run("create-cloudflare", x.created)
}

// created has create-cloudflare make projects.
func (x *templates) created(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string // its end is the language
		kind   []string
		probes []probe
	}{
		{"vue-ts", []string{"--framework", "vue"}, []probe{
			{"GET", "/", "", `200 <div id="app">`}, {"GET", "/api/", "", `200 {"name":"Cloudflare"}`},
			{"GET", "/favicon.ico", "", "200 "},
		}},
		{"hello-world-ts", []string{"--type", "hello-world"}, []probe{{"GET", "/", "", "200 Hello World!"}}},
		{"scheduled-ts", []string{"--type", "scheduled"}, []probe{{"GET", "/", "", "200 To test the scheduled handler, "}}},
		{"common-ts", []string{"--type", "common"}, []probe{{"GET", "/api/todos/5", "", "200 Todo #5"}}},
		{"openapi-ts", []string{"--type", "openapi"},
			[]probe{{"GET", "/api/tasks", "", `200 {"success":true,"tasks":[{"name":"Clean my room"`}}},
		{"files-js", []string{"--type", "hello-world-with-assets"}, []probe{
			{"GET", "/", "", "200 <title>Hello, World!</title>"}, {"GET", "/message", "", "200 Hello, World!"},
			{"GET", "/gone", "", "404 Not Found"},
		}},
		// A worker has the name of the queue whose messages it takes, and the template's queue has this name.
		{"my-queue", []string{"--type", "queues"}, []probe{{"GET", "/", "", "200 Sent message to the queue"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			lang := "ts"
			if strings.HasSuffix(c.name, "-js") {
				lang = "js"
			}
			parent := t.TempDir()
			args := append([]string{filepath.Join(x.modules, "create-cloudflare", "dist", "cli.js"), c.name}, c.kind...)
			runs(t, parent, x.settings, x.node, append(args, "--lang", lang, "--no-deploy", "--no-git", "--no-agents",
				"--accept-defaults")...)
			dir := filepath.Join(parent, c.name)
			if c.kind[0] == "--framework" {
				runs(t, dir, x.settings, "npm", "run", "build")
			}
			logs, err := x.NC.SubscribeSync("pinwheel.logs.npm." + c.name)
			require.NoError(t, err)
			require.Contains(t, x.Deploy(t, dir, "--owner", "npm"), "deployed npm/"+c.name+" version 1-")
			x.probe(t, c.name, c.probes)
			if c.name == "my-queue" {
				line, err := logs.NextMsg(time.Minute)
				require.NoError(t, err, "the queue's message comes to the queue handler")
				require.Contains(t, string(line.Data), "processed: ")
			}
			// A schedule of theirs asks a host that is not there.
			require.Zero(t, x.Pinwheel("workers", "rm", "npm/"+c.name, "--yes").Code)
		})
	}
}

// frameworks builds projects of frameworks by the command of the framework, and deploys what the build leaves. The
// packages are those of testdata/frameworks/package-lock.json.
//
// create-cloudflare makes such projects too, but from starters on GitHub, or by a version of sv that npm's registry
// need not have. So the files that it adds to a starter are taken from its package: all of Hono's project are. The
// starter of SvelteKit is made by sv. Those of Astro and React Router are written by hand in testdata/frameworks with
// the adapter's documented configuration, beside routes that use bindings.
func (x *templates) frameworks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("testdata/frameworks")))
	runs(t, dir, x.settings, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline")
	for _, c := range []struct {
		name    string
		overlay string // of create-cloudflare's templates
		build   []string
		deploy  []string // directories
		probes  []probe
	}{
		{"hono", "hono/workers/templates", nil, []string{"."}, []probe{
			{"GET", "/", "", "200 <title>Hello, World!</title>"}, {"GET", "/message", "", "200 Hello Hono!"},
			{"GET", "/gone", "", "404 404 Not Found"},
		}},
		{"svelte", "svelte/workers/templates", []string{"vite", "build"}, []string{"."}, []probe{
			{"GET", "/", "", "200 Welcome to SvelteKit"}, {"GET", "/robots.txt", "", "200 User-agent: *"},
			{"GET", "/gone", "", "404 "},
			{"PUT", "/api/file", "a note", "200 stored"}, {"GET", "/api/file", "", "200 a note"},
			{"GET", "/_worker.js", "", "404 "},
		}},
		{"astro", "", []string{"astro", "build"}, []string{"."}, []probe{
			{"GET", "/", "", "200 made by the build"}, {"GET", "/file.txt", "", "200 a file of astro"},
			{"GET", "/gone", "", "404 "},
			{"PUT", "/api/note", "a note", "200 stored"}, {"GET", "/api/note", "", `200 {"note":"a note"}`},
			{"GET", "/visits", "", "200 visit 1"},
		}},
		{"react-router", "react-router/ts", []string{"react-router", "build"}, []string{"."}, []probe{
			{"GET", "/", "", "200 <title>New React Router App</title>"}, {"GET", "/.data", "", "200 Hello from Cloudflare"},
			{"GET", "/file.txt", "", "200 a file of react-router"}, {"GET", "/gone", "", "404 "},
		}},
		{"vite", "", []string{"vite", "build"}, []string{"dist/greeter", "."}, []probe{
			{"GET", "/", "", "200 <h1>a page of vite</h1>"}, {"GET", "/file.txt", "", "200 a file of vite"},
			{"GET", "/api/greet", "", `200 "Hello, Ada"`}, {"GET", "/api/web", "", `200 "greeter has /api/web"`},
			{"GET", "/api/own", "", "200 42"},
			{"GET", "/api/version", "", `200 "string"`}, {"GET", "/api/file", "", `200 "a file of vite\n"`},
			{"GET", "/api/send", "", `200 "sent"`},
			{"GET", "/api/gone", "", "404 no such answer"},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			project := filepath.Join(dir, c.name)
			if c.name == "svelte" {
				x.svelte(t, dir)
			}
			if c.overlay != "" {
				x.overlay(t, c.overlay, project)
			}
			if c.build != nil {
				runs(t, project, x.settings, filepath.Join(dir, "node_modules", ".bin", c.build[0]), c.build[1:]...)
			}
			for _, d := range c.deploy {
				x.Deploy(t, filepath.Join(project, d), "--owner", "npm")
			}
			x.probe(t, c.name, c.probes)
			if c.name == "vite" {
				require.Eventually(t, func() bool {
					_, text := x.request(t, "GET", "/vite/api/jobs", "")
					return text == `"jobs/a,jobs/b"`
				}, time.Minute, 50*time.Millisecond, "the queue handler gets what sendBatch sent")
			}
		})
	}
}

// svelte makes a project by the tool of SvelteKit and, as create-cloudflare does, changes its adapter. The route of
// testdata is added.
func (x *templates) svelte(t *testing.T, dir string) {
	t.Helper()
	route := filepath.Join(dir, "svelte", "src")
	kept := filepath.Join(t.TempDir(), "src")
	require.NoError(t, os.CopyFS(kept, os.DirFS(route)))
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "svelte")))
	runs(t, dir, x.settings, x.node, filepath.Join(x.modules, "sv", "dist", "bin.mjs"), "create", "svelte", "--template",
		"minimal", "--types", "ts", "--no-add-ons", "--no-install")
	require.NoError(t, os.CopyFS(route, os.DirFS(kept)))
	replace(t, filepath.Join(dir, "svelte", "vite.config.ts"), "@sveltejs/adapter-auto", "@sveltejs/adapter-cloudflare")
}

// overlay copies files of create-cloudflare into a project, as create-cloudflare does. SvelteKit's route needs a bucket
// beside.
func (x *templates) overlay(t *testing.T, template, project string) {
	t.Helper()
	require.NoError(t, os.CopyFS(project, os.DirFS(filepath.Join(x.modules, "create-cloudflare", "templates", template))))
	manifest := filepath.Join(project, "wrangler.jsonc")
	replace(t, manifest, "<WORKER_NAME>", filepath.Base(project))
	// On a slow machine the first page takes more than the 50 ms of CPU time that an event has by default.
	replace(t, manifest, `"compatibility_date"`, `"limits": { "cpu_ms": 5000 }, "compatibility_date"`)
	replace(t, manifest, "<COMPATIBILITY_DATE>", "2026-10-06")
	if filepath.Base(project) == "svelte" {
		replace(t, manifest, `"observability"`, `"r2_buckets": [{ "binding": "FILES", "bucket_name": "files" }], "observability"`)
	}
}

// replace replaces what must be in a file.
func replace(t *testing.T, file, old, text string) {
	t.Helper()
	have, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(have), old, file)
	require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(string(have), old, text)), 0o600))
}

// probe sends requests to a worker through the HTTP door.
func (x *templates) probe(t *testing.T, worker string, probes []probe) {
	t.Helper()
	for _, p := range probes {
		status, body := x.request(t, p.method, "/"+worker+p.path, p.body)
		want, contains, _ := strings.Cut(p.want, " ")
		require.Equal(t, want, strconv.Itoa(status), "%s %s: %s", p.method, p.path, body)
		require.Contains(t, body, contains, "%s %s", p.method, p.path)
	}
}

func (x *templates) request(t *testing.T, method, path, body string) (status int, text string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+x.HTTP+path, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/octet-stream") // the frameworks refuse forms of other origins
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	all, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer.StatusCode, string(all)
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
		{"yarn4", "@yarnpkg/cli-dist@4.18.1", ".bin", []string{"yarn", "install", "--no-immutable", "--mode=skip-build"},
			map[string]string{"yarn.lock": "", ".yarnrc.yml": "nodeLinker: node-modules\n"}},
		{"bun", "@oven/bun-linux-" + npmArch() + "@1.4.5", "@oven/bun-linux-" + npmArch() + "/bin",
			[]string{"bun", "install", "--ignore-scripts"}, nil},
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
