package e2e

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// web sends HTTP requests to the workers of a process.
type web struct {
	t      testing.TB
	addr   string
	client *http.Client
}

// openWeb returns a client of workers at WORKER--OWNER.w.test, which the process at addr answers.
func openWeb(t testing.TB, addr string) *web {
	tr := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", addr)
		},
		MaxIdleConnsPerHost: 100,
	}
	t.Cleanup(tr.CloseIdleConnections)
	return &web{t, addr, &http.Client{Transport: tr, Timeout: patience}}
}

func withWeb(cfg *config.Config) { cfg.HTTPAddr, cfg.HTTPDomain = "127.0.0.1:0", "w.test" }

// ask sends a request to a worker, and returns the response with its whole body.
func (w *web) ask(method, target, path, body string, header ...string) (*http.Response, string) {
	w.t.Helper()
	owner, worker, _ := events.ParseTarget(target)
	var b io.Reader
	if body != "" {
		b = strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(context.Background(), method, "http://"+worker+"--"+owner+".w.test"+path, b)
	require.NoError(w.t, err)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := w.client.Do(r)
	require.NoError(w.t, err)
	got, err := io.ReadAll(resp.Body)
	require.NoError(w.t, err)
	require.NoError(w.t, resp.Body.Close())
	return resp, string(got)
}

func TestHTTP(t *testing.T) {
	t.Parallel()
	key, _ := newKey(t)
	h := openFleet(t, withWeb, withKey(key), func(c *config.Config) { c.Control = config.ControlByPermissions })
	w := openWeb(t, h.fleet.HTTPAddr())
	h.deploy("acme", "api", `export default {
		async fetch(request) {
			const { pathname } = new URL(request.url);
			if (pathname === "/throws") throw new Error("the password is 42");
			const seen = Object.fromEntries(request.headers);
			return Response.json({ method: request.method, url: request.url, body: await request.text(), seen }, { status: 201, headers: { "x-one": "1" } });
		},
	}`)
	h.deploy("acme", "loops", `export default { fetch() { for (;;); } }`, `{"limits": {"cpuMs": 50}}`)
	resp, body := w.ask("POST", "acme/api", "/orders?x=1", `{"id":7}`, "Authorization", "Bearer x", "X-Real-Ip", "6.6.6.6")
	require.Equal(t, []any{201, "1", "application/json"}, []any{resp.StatusCode, resp.Header.Get("X-One"),
		resp.Header.Get("Content-Type")}, body)
	var doc struct {
		Method, URL, Body string
		Seen              map[string]string
	}
	require.NoError(t, json.Unmarshal([]byte(body), &doc))
	require.Equal(t, []string{"POST", "http://api--acme.w.test/orders?x=1", `{"id":7}`},
		[]string{doc.Method, doc.URL, doc.Body})
	require.Equal(t, []string{"Bearer x", "127.0.0.1", "127.0.0.1", "api--acme.w.test", resp.Header.Get("Event-Id")},
		[]string{doc.Seen["authorization"], doc.Seen["x-real-ip"], doc.Seen["x-forwarded-for"], doc.Seen["host"],
			doc.Seen["event-id"]})
	require.NotEmpty(t, doc.Seen["event-id"])

	resp, body = w.ask("HEAD", "acme/api", "/", "")
	require.Equal(t, []any{201, ""}, []any{resp.StatusCode, body})
	resp, body = w.ask("GET", "acme/api", "/throws", "")
	require.Equal(t, []any{500, "exception\n"}, []any{resp.StatusCode, body}, "what the owner's code says is not for its users")
	resp, _ = w.ask("GET", "acme/loops", "/", "")
	require.Equal(t, 429, resp.StatusCode)
	resp, body = w.ask("GET", "acme/none", "/", "")
	require.Equal(t, []any{404, "no worker has this address\n"}, []any{resp.StatusCode, body})
	h.settled()
	require.Empty(t, h.dead(), "a request leaves nothing behind")

	// A version that is not active has no host but a signed one.
	h.deploy("acme", "api", `export default { fetch: () => new Response("two") }`, `{"http": {"previews": true}}`)
	h.deploy("acme", "api", `export default { fetch: () => new Response("three") }`, `{"http": {"previews": true}}`)
	_, body = w.ask("GET", "acme/api", "/", "")
	require.Equal(t, "three", body)
	for _, name := range []string{"1--api", "2--api"} {
		resp, _ = w.ask("GET", "acme/"+name, "/", "")
		require.Equal(t, 404, resp.StatusCode, name)
	}
	code, out, errs := h.command("", "versions", "preview", "acme/api", "2", "--for", "90m", "--json")
	require.Zero(t, code, errs)
	var link control.PreviewLink
	require.NoError(t, json.Unmarshal([]byte(out), &link))
	require.WithinDuration(t, time.Now().Add(90*time.Minute), link.Until, 2*time.Minute)
	_, port, _ := net.SplitHostPort(h.fleet.HTTPAddr())
	require.Equal(t, "http://"+link.Host+":"+port+"/", link.URL)
	name, _ := strings.CutSuffix(link.Host, "--acme.w.test")
	_, body = w.ask("GET", "acme/"+name, "/", "")
	require.Equal(t, "two", body)
	_, out, errs = h.command("", "audit")
	require.Regexp(t, `acme +versions.preview +.*\{"until":"\S+","version":"2-[0-9a-f]{12}",`, out, errs)
	code, _, errs = h.command("", "versions", "preview", "acme/api", "1")
	require.Equal(t, []any{1, true}, []any{code, strings.Contains(errs, `its manifest does not say "previews": true in "http"`)}, errs)
}

// Bodies that do not fit in memory go both ways while they are made.
func TestHTTPBodies(t *testing.T) {
	t.Parallel()
	h := openFleet(t, withWeb)
	w := openWeb(t, h.fleet.HTTPAddr())
	h.deploy("acme", "echo", `export default { fetch: (request) => new Response(request.body) }`, `{"limits": {"cpuMs": 60000, "wallMs": 300000}}`)
	const size = 64 << 20
	sent, came := sha256.New(), sha256.New()
	body := io.TeeReader(io.LimitReader(rand.NewChaCha8([32]byte{1}), size), sent)
	resp, err := w.client.Post("http://echo--acme.w.test/", "application/octet-stream", body)
	require.NoError(t, err)
	n, err := io.Copy(came, resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.EqualValues(t, size, n)
	require.True(t, bytes.Equal(sent.Sum(nil), came.Sum(nil)), "the same bytes")
}

// A client that goes is told to the handler.
func TestHTTPClientGone(t *testing.T) {
	t.Parallel()
	h := openFleet(t, withWeb)
	w := openWeb(t, h.fleet.HTTPAddr())
	h.deploy("acme", "waits", `export default { fetch(request) {
		console.log("came");
		setInterval(() => {}, 1000);
		return new Promise((resolve) => request.signal.addEventListener("abort", () => { console.log("gone: " + request.signal.reason.name); resolve(new Response()) }));
	} }`)
	logs, err := h.nc.SubscribeSync("pinwheel.logs.acme.waits")
	require.NoError(t, err)
	require.NoError(t, h.nc.Flush())
	says := func(want string) {
		t.Helper()
		m, err := logs.NextMsg(patience)
		require.NoError(t, err)
		require.Contains(t, string(m.Data), want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://waits--acme.w.test/", nil)
		if err == nil {
			_, err = w.client.Do(r)
		}
		over <- err
	}()
	says("came")
	cancel()
	require.ErrorIs(t, <-over, context.Canceled)
	says("gone: AbortError")
}

// startWeb starts a process of the fleet that answers HTTP requests, and returns where.
func startWeb(t testing.TB, url string, env ...string) (*fleettest.Process, string) {
	t.Helper()
	p := fleettest.Serve(t, url, append([]string{"PINWHEEL_HTTP_ADDR=127.0.0.1:0",
		"PINWHEEL_HTTP_DOMAIN=w.test", "PINWHEEL_HTTP_LOG=false"}, env...)...)
	return p, p.HTTP
}

// flow sends POST requests on several kept connections until nobody accepts any more.
type flow struct {
	web      *web
	scheme   string // "" = http
	reopens  bool   // connections end after some requests, so that all processes have some
	running  sync.WaitGroup
	answered sync.Map // ids
	count    atomic.Int64
	faults   atomic.Int64 // requests that had no answer
	strict   bool         // a fault fails the test
	stop     atomic.Bool
}

func (f *flow) begin(clients int) {
	for c := range clients {
		f.running.Go(func() {
			for i := 0; !f.stop.Load(); i++ {
				if !f.one(fmt.Sprintf("%d-%d", c, i)) {
					return
				}
			}
		})
	}
}

// one sends a request. It returns false when nobody accepts connections.
func (f *flow) one(id string) bool {
	reused := false
	trace := httptrace.WithClientTrace(context.Background(),
		&httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { reused = i.Reused }})
	r, err := http.NewRequestWithContext(trace, http.MethodPost, cmp.Or(f.scheme, "http")+"://w--acme.w.test/",
		strings.NewReader(id))
	if err != nil {
		f.web.t.Error(err)
		return false
	}
	r.Close = f.reopens && f.count.Load()%10 == 9
	resp, err := f.web.client.Do(r)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return false
	case err != nil && !reused && f.strict && (errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.EOF)):
		return false // it was in the queue of a listener that closed: no process had it
	case err != nil:
		if f.faults.Add(1); f.strict {
			f.web.t.Errorf("request %s, on a connection in use: %v: %v", id, reused, err)
		}
		return !f.strict
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil || resp.StatusCode != 200 || string(body) != "did "+id {
		if f.faults.Add(1); f.strict {
			f.web.t.Errorf("request %s: %d %q %v", id, resp.StatusCode, body, err)
		}
		return true
	}
	f.answered.Store(id, true)
	f.count.Add(1)
	return true
}

// The processes of a supervisor share a socket. When one is killed, its requests fail and the others are answered.
func TestSupervisedHTTP(t *testing.T) {
	t.Parallel()
	s := supervise(t, "PINWHEEL_HTTP_ADDR=127.0.0.1:0", "PINWHEEL_HTTP_DOMAIN=w.test", "PINWHEEL_HTTP_LOG=false",
		"PINWHEEL_NATS_PORT=-1", "PINWHEEL_DATA="+natstest.StoreDir(t))
	h := &testFleet{t: t}
	h.connect(s.URL)
	h.deploy("acme", "w", `export default { fetch: async (request) => new Response("did " + await request.text()) }`)
	s.installed()
	addr := s.HTTP
	require.NotEmpty(t, addr)
	f := &flow{web: openWeb(t, addr)}
	f.begin(4)
	more := func() {
		from := f.count.Load()
		require.Eventually(t, func() bool { return f.count.Load() > from+200 }, patience, time.Millisecond)
	}
	more()
	victim := s.pid(0)
	require.NoError(t, syscall.Kill(victim, syscall.SIGKILL))
	more()
	require.Eventually(t, func() bool {
		p := s.stats().Processes[0]
		return p.PID != 0 && p.PID != victim && p.ProcessStats != nil && p.Dispatch.Owners == 1
	}, patience, 10*time.Millisecond)
	more()
	require.LessOrEqual(t, f.faults.Load(), int64(8), "no more than the process had")
	f.stop.Store(true)
	f.running.Wait()
	s.Signal(syscall.SIGTERM)
	require.Eventually(t, func() bool {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			_ = c.Close()
		}
		return errors.Is(err, syscall.ECONNREFUSED)
	}, patience, 10*time.Millisecond)
}

// An owner whose requests fill its queue delays no other owner's.
func TestHTTPOfABusyOwner(t *testing.T) {
	t.Parallel()
	h := openFleet(t, withWeb, func(cfg *config.Config) { cfg.OwnerMaxQueued, cfg.OwnerMaxRunning = 4, 2 })
	w := openWeb(t, h.fleet.HTTPAddr())
	h.deploy("acme", "waits", `let release; export default { fetch: (r) => new Promise((done) => setTimeout(() => done(new Response("ok")), 500)) }`)
	h.deploy("beta", "quick", `export default { fetch: () => new Response("ok") }`)
	var asking sync.WaitGroup
	var refused atomic.Int64
	for range 20 {
		asking.Go(func() {
			resp, err := w.client.Get("http://waits--acme.w.test/")
			if err != nil {
				t.Error(err)
				return
			}
			_ = resp.Body.Close()
			switch {
			case resp.StatusCode == 503 && resp.Header.Get("Retry-After") == "1":
				refused.Add(1)
			case resp.StatusCode != 200:
				t.Errorf("status %d", resp.StatusCode)
			}
		})
	}
	require.Eventually(t, func() bool { return refused.Load() > 0 }, patience, time.Millisecond, "a full queue refuses")
	resp, _ := w.ask("GET", "beta/quick", "/", "")
	require.Equal(t, 200, resp.StatusCode)
	asking.Wait()
}
