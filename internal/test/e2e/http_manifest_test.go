package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// askHost is ask for a host of its own.
func (w *web) askHost(method, host, path, body string, header ...string) (*http.Response, string) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), method, "http://"+host+path, strings.NewReader(body))
	require.NoError(w.t, err)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := w.client.Do(r)
	require.NoError(w.t, err)
	defer func() { _ = resp.Body.Close() }()
	got, err := io.ReadAll(resp.Body)
	require.NoError(w.t, err)
	return resp, string(got)
}

// A worker with a token answers those that have its current value, and everybody on its public paths.
func TestHTTPToken(t *testing.T) {
	t.Parallel()
	key, _ := newKey(t)
	h := openFleet(t, withWeb, withKey(key))
	w := openWeb(t, h.fleet.HTTPAddr())
	h.secret("acme", "TOKEN", "first")
	h.deploy("acme", "site", `export default { fetch: (r) => new Response(new URL(r.url).pathname) }`,
		`{"secrets": ["TOKEN"], "http": {"auth": "TOKEN", "public": {"GET": ["/health"]}, "cors": "reflective"}}`)
	resp, body := w.ask("GET", "acme/site", "/", "", "Origin", "https://page.example")
	require.Equal(t, []any{401, "https://page.example"},
		[]any{resp.StatusCode, resp.Header.Get("Access-Control-Allow-Origin")}, body)
	_, body = w.ask("GET", "acme/site", "/health", "")
	require.Equal(t, "/health", body)
	resp, _ = w.ask("GET", "acme/site", "/health/%2e%2e/admin", "")
	require.Equal(t, 401, resp.StatusCode, "the worker would see /admin")
	_, body = w.ask("GET", "acme/site", "/admin", "", "Authorization", "Bearer first")
	require.Equal(t, "/admin", body)
	resp, _ = w.ask("OPTIONS", "acme/site", "/admin", "", "Origin", "https://page.example",
		"Access-Control-Request-Method", "PUT")
	require.Equal(t, []any{204, "PUT"}, []any{resp.StatusCode, resp.Header.Get("Access-Control-Allow-Methods")})

	h.secret("acme", "TOKEN", "second")
	require.Eventually(t, func() bool {
		resp, _ := w.ask("GET", "acme/site", "/", "", "X-Token", "second")
		return resp.StatusCode == 200
	}, patience, 10*time.Millisecond)
	resp, _ = w.ask("GET", "acme/site", "/", "", "X-Token", "first")
	require.Equal(t, 401, resp.StatusCode)
}

// Routes need a granted host, and end with the grant.
func TestHTTPRoutes(t *testing.T) {
	t.Parallel()
	h := openFleet(t, withWeb)
	w := openWeb(t, h.fleet.HTTPAddr())
	dir := t.TempDir()
	path := filepath.Join(dir, "shop.js")
	require.NoError(t, os.WriteFile(path, []byte(`export default { fetch: (r) => new Response("shop " + r.url) }`), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "shop.pinwheel.json"),
		[]byte(`{"http": {"routes": ["shop.acme.example/*"]}}`), 0o600))
	code, _, errs := h.command("", "deploy", path, "--owner", "acme")
	require.NotZero(t, code)
	require.Contains(t, errs, "http.routes[0] is shop.acme.example/*: the owner may not have host shop.acme.example: an operator grants it with 'pinwheel owners set OWNER --hosts shop.acme.example'")
	code, out, errs := h.command("", "owners", "set", "acme", "--hosts", "*.acme.example,acme.example")
	require.Zero(t, code, errs)
	require.Contains(t, out, "*.acme.example, acme.example")
	code, _, errs = h.command("", "deploy", path, "--owner", "acme")
	require.Zero(t, code, errs)
	_, body := w.askHost("GET", "shop.acme.example", "/a?b", "")
	require.Equal(t, "shop http://shop.acme.example/a?b", body)

	// Another worker cannot have it, until this one is gone.
	code, _, errs = h.command("", "deploy", path, "--owner", "acme", "--name", "other")
	require.NotZero(t, code)
	require.Contains(t, errs, "route shop.acme.example/* is that of acme/shop")
	code, _, errs = h.command("", "workers", "rm", "acme/shop", "--yes")
	require.Zero(t, code, errs)
	code, _, errs = h.command("", "deploy", path, "--owner", "acme", "--name", "other")
	require.Zero(t, code, errs)
	resp, _ := w.askHost("GET", "shop.acme.example", "/", "")
	require.Equal(t, 200, resp.StatusCode)

	code, _, errs = h.command("", "owners", "set", "acme", "--hosts", "")
	require.Zero(t, code, errs)
	require.Eventually(t, func() bool {
		resp, _ := w.askHost("GET", "shop.acme.example", "/", "")
		return resp.StatusCode == 404
	}, patience, 10*time.Millisecond)
}

// Stored requests of owners whose inboxes the fleet tells apart, with bodies that do not fit a message.
func TestStoredRequests(t *testing.T) {
	t.Parallel()
	for file, prefixes := range map[string]config.List{"users.conf": {"_INBOX.{owner}."},
		"accounts.conf": {"_INBOX.{owner}.", "_R_."}} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			url := natstest.StartConfigured(t, "../../../deploy/nats/"+file)
			h := openFleet(t, withWeb, func(c *config.Config) {
				c.NatsURL, c.NatsUser, c.NatsPassword, c.ReplyPrefixes, c.MaxBytes = url, "fleet", "fleet-secret", prefixes, 64<<20
			})
			w := openWeb(t, h.fleet.HTTPAddr())
			h.deploy("acme", "w", `export default { async fetch(r) {
				if (r.url.endsWith("/throws")) throw new Error("no");
				return new Response(r.method + " " + (await r.text()), { status: 201, headers: { "x-one": "1" } });
			} }`, `{"http": {"delivery": "stored"}, "limits": {"cpuMs": 5000}}`)
			resp, body := w.ask("POST", "acme/w", "/", "hello")
			require.Equal(t, []any{201, "1", "POST hello"}, []any{resp.StatusCode, resp.Header.Get("X-One"), body})
			require.NotEmpty(t, resp.Header.Get("Event-Id"))
			resp, body = w.ask("GET", "acme/w", "/", "")
			require.Equal(t, []any{201, "GET "}, []any{resp.StatusCode, body})
			long := strings.Repeat("0123456789", 300_000)
			_, body = w.ask("PUT", "acme/w", "/", long)
			require.Equal(t, "PUT "+long, body)
			resp, body = w.ask("POST", "acme/w", "/throws", "x")
			require.Equal(t, []any{500, "exception\n"}, []any{resp.StatusCode, body})
			h.settled()
		})
	}
}

// What is stored is answered when the process in which it runs dies, and what was accepted runs when the process that
// accepted it dies.
func TestStoredRequestsOutliveProcesses(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	gate, addr := startWeb(t, srv.URL(), shortLease)
	victim, _ := startWeb(t, srv.URL(), shortLease)
	h := &testFleet{t: t}
	h.connect(srv.URL())
	const code = `export default { async fetch(request) {
		const id = await request.text();
		console.log(id);
		await new Promise((done) => setTimeout(done, 500));
		return new Response("did " + id);
	} }`
	h.deploy("acme", "w", code, `{"http": {"delivery": "stored"}}`)
	h.deploy("acme", "hook", code, `{"http": {"delivery": "accepted"}}`)
	var mu sync.Mutex
	ran := map[string]int{}
	started := make(chan struct{}, 1000)
	_, err := h.nc.Subscribe("pinwheel.logs.acme.*", func(m *nats.Msg) {
		var line events.LogLine
		if json.Unmarshal(m.Data, &line) == nil && line.Level == "info" {
			mu.Lock()
			ran[line.Text]++
			mu.Unlock()
			started <- struct{}{}
		}
	})
	require.NoError(t, err)
	require.NoError(t, h.nc.Flush())
	w := openWeb(t, addr)
	const n = 40
	var asking sync.WaitGroup
	var answered atomic.Int64
	for i := range n {
		asking.Go(func() {
			id := fmt.Sprint("stored-", i)
			resp, err := w.client.Post("http://w--acme.w.test/", "text/plain", strings.NewReader(id))
			if err != nil {
				t.Error(err)
				return
			}
			body, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if err != nil || resp.StatusCode != 200 || string(body) != "did "+id {
				t.Errorf("%s: %d %q %v", id, resp.StatusCode, body, err)
			}
			answered.Add(1)
		})
	}
	for range n / 2 {
		<-started
	}
	victim.Kill()
	asking.Wait()
	require.EqualValues(t, n, answered.Load())

	startWeb(t, srv.URL(), shortLease)
	var ids []string
	for i := range 10 {
		id := fmt.Sprint("accepted-", i)
		resp, body := w.ask("POST", "acme/hook", "/", id)
		require.Equal(t, []any{202, ""}, []any{resp.StatusCode, body})
		ids = append(ids, id)
	}
	gate.Kill()
	require.Eventually(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		for _, id := range ids {
			if ran[id] == 0 {
				return false
			}
		}
		return true
	}, patience, 10*time.Millisecond)
}

// A deploy by the owner API is bound to the owner's hosts too.
func TestRoutesByTheOwnerAPI(t *testing.T) {
	t.Parallel()
	h := openFleet(t, withWeb)
	r := uploaded(t, h.nc, "acme", "w", `export default { fetch: () => new Response("x") }`)
	r.Spec.HTTP = &workers.HTTP{Routes: []string{"a.example/*"}}
	_, failure := deployAsOwner(t, h.nc, "acme", r)
	require.Contains(t, failure, "the owner may not have host a.example")
	code, _, errs := h.command("", "owners", "set", "acme", "--hosts", "a.example")
	require.Zero(t, code, errs)
	// an answered deploy has removed it
	r.Bundle = uploaded(t, h.nc, "acme", "w", `export default { fetch: () => new Response("x") }`).Bundle
	_, failure = deployAsOwner(t, h.nc, "acme", r)
	require.Empty(t, failure)
}

// A worker's output has lines about its requests, if it wants them; and a worker may have no address.
func TestHTTPLogAndEnabled(t *testing.T) {
	t.Parallel()
	h := openFleet(t, withWeb)
	w := openWeb(t, h.fleet.HTTPAddr())
	lines, err := h.nc.SubscribeSync("pinwheel.logs.acme.*")
	require.NoError(t, err)
	require.NoError(t, h.nc.Flush())
	h.deploy("acme", "site", "// @log-level full\n// @log-request-body true\nexport default { fetch: () => new Response('ok', { status: 418 }) }")
	h.deploy("acme", "quiet", "export default { fetch: () => new Response('ok') }")
	resp, _ := w.ask("POST", "acme/quiet", "/", "hello")
	require.Equal(t, 200, resp.StatusCode)
	resp, _ = w.ask("POST", "acme/site", "/tea?sugar=1", "hello", "X-Note", "hi", "Authorization", "Bearer secret")
	require.Equal(t, 418, resp.StatusCode)
	m, err := lines.NextMsg(patience)
	require.NoError(t, err)
	require.Equal(t, "pinwheel.logs.acme.site", m.Subject)
	var line events.LogLine
	require.NoError(t, json.Unmarshal(m.Data, &line))
	require.Equal(t, resp.Header.Get("Event-Id"), line.EventID)
	require.Contains(t, line.Text, "POST /tea?sugar=1 418 in ")
	require.Contains(t, line.Text, "\n  request header X-Note: hi\n")
	require.Contains(t, line.Text, "\n  request body: hello")
	require.NotContains(t, line.Text, "secret")

	h.deploy("acme", "site", "// @enabled false\nexport default { fetch: () => new Response('ok'), task: () => 7 }")
	resp, _ = w.ask("GET", "acme/site", "/", "")
	require.Equal(t, 404, resp.StatusCode)
	require.Contains(t, string(h.reply(h.send(events.Task, "acme/site", "")).Body), `"data":7`, "events of NATS run")
}
