package compat_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy/bundle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
)

// groups are the modules in testdata/packages. Each is one worker with a case for each of its packages.
var groups = []string{"checks", "codes", "formats", "nodes", "pages", "servers", "texts", "tools"}

// byText are packages that make code of text, as Cloudflare refuses it too.
var byText = []string{"ajv", "eta", "handlebars", "nunjucks", "protobufjs"}

// TestManyPackages asks workers over HTTP for what packages do, and node for the same.
func TestManyPackages(t *testing.T) {
	t.Parallel()
	dir := packages(t)
	const noCode = "EvalError: Code generation from strings disallowed for this context"
	f := httpFleet(t, dir)
	files := make([]string, len(groups))
	for i, group := range groups {
		files[i] = filepath.Join(dir, "packages", group+".mjs")
	}
	all := 0
	for i, cases := range runNode(t, dir, files) {
		f.deploy(t, "packages/"+groups[i]+".mjs")
		for name, want := range cases {
			_, got := get(t, "http://"+f.HTTP+"/"+groups[i]+"/"+url.PathEscape(name))
			require.NotContains(t, want, "thrown ", "%s in node", name)
			if slices.Contains(byText, name) {
				assert.Contains(t, got, noCode, name)
				continue
			}
			assert.Equal(t, want, got, "%s of %s", name, groups[i])
			all++
		}
	}
	require.Greater(t, all, 100)
}

// httpFleet is a fleet whose workers have addresses.
func httpFleet(t *testing.T, dir string) *fleet {
	t.Helper()
	f := fleettest.Start(t, func(c *config.Config) { c.HTTPAddr, c.HTTPPaths = "127.0.0.1:0", "npm" })
	return &fleet{Fleet: f, dir: dir, mode: workers.Persistent}
}

// runNode returns what the cases of each module answer in node. dir is the directory of the packages.
func runNode(t *testing.T, dir string, modules []string) (answers []map[string]string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", append([]string{filepath.Join(dir, "packages", "run.mjs")}, modules...)...)
	cmd.Env, cmd.WaitDelay = append(os.Environ(), "TZ=UTC"), time.Second
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(out, &answers), "%s", out)
	return answers
}

// Hono's getConnInfo for Cloudflare has the address of the client, and caches may be set to a proxy of what it was, as
// otel-cf-workers does.
func TestGlobalsThatPackagesUse(t *testing.T) {
	t.Parallel()
	dir := packages(t)
	f := httpFleet(t, dir)
	f.deploy(t, "packages/globals.mjs")
	_, got := get(t, "http://"+f.HTTP+"/globals/connection")
	require.JSONEq(t, `{"remote": {"address": "127.0.0.1"}}`, got)
	_, got = get(t, "http://"+f.HTTP+"/globals/caches")
	require.JSONEq(t, `[["default put", "default match", "mine put", "mine delete"], "cached", true]`, got)
}

// otel-cf-workers imports node:events and node:async_hooks. Its spans arrive at a collector.
func TestOpenTelemetryOfWorkers(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	spans := make(chan string, 1)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if assert.NoError(t, err) {
			spans <- string(body)
		}
	}))
	defer collector.Close()
	w := f.deploy(t, "packages/otel.mjs", "--var", "COLLECTOR="+collector.URL)
	a := w.get(t, "http://w.test/hello")
	require.Equal(t, 200, a.status, a.body)
	require.JSONEq(t, `["/hello", 32]`, a.body)
	select {
	case sent := <-spans:
		require.Contains(t, sent, `{"key":"greeting","value":{"stringValue":"hi"}}`)
	case <-time.After(time.Minute):
		t.Fatal("no span has come")
	}
}

const wantsNode = `a worker has Node's modules if its manifest says "node": true (wrangler's: the flag nodejs_compat)`

// What a package has of Node is refused by name without Node's modules, with what to use instead.
func TestPackagesOfNode(t *testing.T) {
	t.Parallel()
	dir := packages(t)
	for name, want := range map[string]string{
		"csv-stringify": `import of "stream": ` + wantsNode,
		"eta":           `import of "node:fs": ` + wantsNode,
		"xml2js":        `import of "events": ` + wantsNode,
	} {
		source := filepath.Join(dir, "packages", "refused-"+name+".mjs")
		text := "import * as it from \"" + name + "\"; export default { task: () => Object.keys(it) };"
		require.NoError(t, os.WriteFile(source, []byte(text), 0o600))
		_, err := bundle.Build(t.Context(), source)
		var refused *bundle.SourceError
		require.ErrorAs(t, err, &refused, name)
		require.Equal(t, want, refused.Diagnostics[0].Text, name)
	}
}
