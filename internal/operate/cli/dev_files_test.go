package cli

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A directory with pages has an address of its own, with its base. A page that is saved is served.
func TestDevOfPages(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "site")
	save := func(name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	save("pinwheel.json", `{"assets": {"directory": "dist", "notFound": "single-page-application"}, "http": {"base": "/shop"}}`)
	save("dist/index.html", "<head></head>one")
	app := filepath.Join(dir, "..", "app")
	save("../app/pinwheel.json", `{"main": "app.js", "assets": {"directory": "dist", "binding": "ASSETS", "workerFirst": ["/*"]}, "http": {"base": "/app"}}`)
	save("../app/app.js", `export default { async fetch(request, env) { const r = await env.ASSETS.fetch(request); return new Response("by handler: " + await r.text()) } }`)
	save("../app/dist/index.html", "<head></head>home")
	ctx, cancel := context.WithCancel(context.Background())
	out, done := &screen{}, make(chan error, 1)
	go func() {
		cfg, err := withDevHTTP(devConfig(t), -1)
		if err != nil {
			done <- err
			return
		}
		done <- runDev(ctx, cfg, zerolog.Nop(), out, []string{dir, app}, nil)
	}()
	defer func() {
		cancel()
		require.NoError(t, <-done)
	}()
	out.shows(t, "is dev/site, version 1-")
	out.shows(t, "is dev/app, version 1-")
	address := regexp.MustCompile(`http://site--dev\.localhost:(\d+)/shop/\n`)
	require.Eventually(t, func() bool { return address.MatchString(out.String()) }, time.Minute, 5*time.Millisecond, "%s",
		out)
	local := net.JoinHostPort("127.0.0.1", address.FindStringSubmatch(out.String())[1])
	host := "site--dev.localhost"
	get := func(path string) string {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+local+path, nil)
		require.NoError(t, err)
		r.Host = host
		resp, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		defer func() { _ = resp.Body.Close() }()
		b, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return string(b)
	}
	const page = `<head><base href="/shop/"></head>`
	require.Equal(t, page+"one", get("/shop/cart/7"))
	save("dist/index.html", "<head></head>two")
	require.Eventually(t, func() bool { return get("/shop/") == page+"two" }, time.Minute, 5*time.Millisecond)

	// A handler reads its files, with the base of its worker.
	host = "app--dev.localhost"
	const home = `by handler: <head><base href="/app/"></head>`
	require.Eventually(t, func() bool { return get("/app/") == home+"home" }, time.Minute, 5*time.Millisecond)
	save("../app/dist/index.html", "<head></head>new")
	require.Eventually(t, func() bool { return get("/app/") == home+"new" }, time.Minute, 5*time.Millisecond)
}

// A file that is new in a directory of routes is a route at once.
func TestDevOfFileRoutes(t *testing.T) {
	t.Parallel()
	dir := project(t, map[string]string{
		"site/pinwheel.json": `{"fileRoutes": "api"}`, "site/api/index.js": `export default () => new Response("home")`,
	})
	out := runsDev(t, filepath.Join(dir, "site"))
	out.shows(t, "is dev/site, version 1-")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "site/api/more.js"),
		[]byte("export default () => new Response('more')"), 0o600))
	out.shows(t, "is dev/site, version 2-")
	require.NoError(t, os.Remove(filepath.Join(dir, "site/api/more.js")))
	out.shows(t, "is dev/site, version 3-")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "site/api/[a-b].js"), []byte("export default () => 1"), 0o600))
	out.shows(t, `[a-b].js: the name "[a-b]" is none of a route`)
}

// saver saves a file when dev first says that it has deployed: before it watches what it has deployed.
type saver struct {
	*screen
	once sync.Once
	save func()
}

func (s *saver) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(", version 1-")) {
		s.once.Do(s.save)
	}
	return s.screen.Write(p)
}

// What is saved while dev deploys is deployed, too.
func TestDevSeesWhatIsSavedWhileItDeploys(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "w.js"), []byte(`import "./part.js"; export default { task() {} }`), 0o600))
	part := filepath.Join(dir, "part.js")
	require.NoError(t, os.WriteFile(part, []byte("globalThis.part = 1"), 0o600))
	ctx, cancel := context.WithCancel(context.Background())
	out := &saver{screen: &screen{},
		save: func() { assert.NoError(t, os.WriteFile(part, []byte("globalThis.part = 2"), 0o600)) }}
	done := make(chan error, 1)
	go func() {
		done <- runDev(ctx, devConfig(t), zerolog.Nop(), out, []string{filepath.Join(dir, "w.js")}, nil)
	}()
	defer func() {
		cancel()
		require.NoError(t, <-done)
	}()
	out.shows(t, "is dev/w, version 2-")
}
