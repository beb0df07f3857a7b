package calls

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	envbindings "github.com/pinwheel-run/pinwheel/internal/env/bindings"
	"github.com/pinwheel-run/pinwheel/internal/env/services"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
	"github.com/pinwheel-run/pinwheel/internal/test/testcert"
	"github.com/pinwheel-run/pinwheel/isolates"
	"github.com/pinwheel-run/pinwheel/isolates/bindings"
)

// fleet is a pool with a Source that is its dispatcher, too. With a cell, what its handlers ask for goes through the
// connection, and the pool has attempts of its own, as in another process.
type fleet struct {
	t    testing.TB
	pool *isolates.Pool
	cell *cell // nil = without one

	mu      sync.Mutex
	next    []*lifecycle.Attempt
	running map[*lifecycle.Attempt]*lifecycle.Attempt // of the pool, to that of the dispatcher
	ended   map[*lifecycle.Attempt]chan *events.Reply // of the dispatcher
	replies map[*lifecycle.Attempt]*events.Reply
	workers map[string]*workers.Worker
	lines   []string
}

// real is what carries out the calls of both fleets.
type real struct {
	host  Host
	files bindings.Files
	roots *x509.CertPool
}

func newFleet(t testing.TB, r real, inCell bool) *fleet {
	t.Helper()
	f := &fleet{t: t, running: map[*lifecycle.Attempt]*lifecycle.Attempt{},
		ended:   map[*lifecycle.Attempt]chan *events.Reply{},
		replies: map[*lifecycle.Attempt]*events.Reply{}, workers: map[string]*workers.Worker{}}
	s, err := services.New(f, prometheus.NewRegistry())
	require.NoError(t, err)
	cfg := isolates.DefaultConfig(2)
	cfg.MaxIsolates, cfg.RootCAs = 20, r.roots
	var h isolates.Host = logging{f, r.host}
	if inCell {
		f.cell = newCell(t, func(*cell) bindings.Services { return s })
		f.cell.call, f.cell.enqueue, f.cell.files = r.host.Call, r.host.Enqueue, r.files.ServeFile
		cfg.Files, cfg.Services, cfg.Dial = f.cell.client, f.cell.client.Services(), f.cell.client.Dial
		h = logging{f, f.cell.client}
	} else {
		cfg.Files, cfg.Services = r.files, s
		cfg.AllowAddresses = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	}
	f.pool, err = isolates.New(cfg, f, h)
	require.NoError(t, err)
	require.NoError(t, f.pool.Open())
	t.Cleanup(f.pool.Close)
	return f
}

// logging is the isolates.Host of a fleet.
type logging struct {
	f *fleet
	Host
}

func (l logging) Log(line events.LogLine) {
	l.f.mu.Lock()
	defer l.f.mu.Unlock()
	l.f.lines = append(l.f.lines, line.Text)
}

func (f *fleet) Next(_, free int) []*lifecycle.Attempt {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := min(free, len(f.next))
	batch := f.next[:n:n]
	f.next = f.next[n:]
	return batch
}

func (f *fleet) Report(_ int, reports []lifecycle.Report) {
	for _, r := range reports {
		if r.Attempt == nil {
			continue
		}
		f.mu.Lock()
		a := f.running[r.Attempt]
		if r.Reply != nil {
			f.replies[a] = r.Reply
		}
		reply, ended := f.replies[a], f.ended[a]
		f.mu.Unlock()
		if c := a.Event.Caller; c != nil && r.Reply != nil {
			c.Reply(r.Reply)
		}
		if r.End == nil {
			continue
		}
		if reply == nil {
			failure := r.End.Failure
			if failure == nil {
				failure = events.Fail(events.ReasonException, "interrupted")
			}
			reply = events.FailureReply(&a.Event.Event, 1, failure)
			if a.Event.Caller != nil {
				a.Event.Caller.Reply(reply)
			}
		}
		if f.cell != nil {
			f.cell.end(f.cell.number(r.Attempt))
		}
		if a.Event.Caller != nil {
			a.Event.Caller.End()
		}
		ended <- reply
	}
}

func (f *fleet) Running(int, *lifecycle.Attempt, time.Duration) bool { return false }
func (f *fleet) Charge(string, time.Duration)                        {}
func (f *fleet) Away(*lifecycle.Attempt, bool)                       {}
func (f *fleet) Overstays(*workers.Worker, bool)                     {}
func (f *fleet) Lost(*workers.Worker, time.Time)                     {}

// Calling wakes the thread: the run has lent its slot.
func (f *fleet) Calling(*lifecycle.Attempt, bool) {}

// Submit implements services.Dispatcher.
func (f *fleet) Submit(batch []*lifecycle.Delivery) {
	for _, d := range batch {
		if f.start(d) == nil {
			d.Caller.Reply(events.FailureReply(&d.Event, 1, events.Fail(events.ReasonNoWorker, "%s", d.Worker)))
			d.Caller.End()
		}
	}
}

// start has an event run; nil = there is no such worker.
func (f *fleet) start(d *lifecycle.Delivery) chan *events.Reply {
	f.mu.Lock()
	w := f.workers[d.Worker]
	f.mu.Unlock()
	if w == nil {
		return nil
	}
	a := &lifecycle.Attempt{Event: d, Worker: w, Number: 1, Start: time.Now()}
	in := a
	if f.cell != nil {
		in = f.inCell(a)
	}
	ended := make(chan *events.Reply, 1)
	f.mu.Lock()
	f.running[in], f.ended[a] = a, ended
	f.next = append(f.next, in)
	f.mu.Unlock()
	for i := range 2 {
		f.pool.Wake(i)
	}
	return ended
}

// inCell is an attempt as the cell has it: it reads the body of its event through the connection, and does not know
// who waits for its reply.
func (f *fleet) inCell(a *lifecycle.Attempt) *lifecycle.Attempt {
	in := f.cell.start(a)
	e := *a.Event
	in.Event, e.Caller = &e, nil
	if p := e.Parts; p != nil {
		e.Parts = &events.Parts{ID: p.ID, N: p.N, Live: p.Live, Read: f.cell.client.Part(f.cell.number(in))}
	}
	if s := e.Service; s != nil {
		to := events.ServiceTarget{Worker: e.Worker, Entrypoint: s.Entrypoint}
		var err error
		e.Service, err = (&events.ServiceTree{}).Begin(nil, "caller", to, s.Method)
		require.NoError(f.t, err)
		e.Service.CF = s.CF
	}
	return in
}

// install installs a worker.
func (f *fleet) install(name, code string) {
	w := &workers.Worker{Owner: "acme", Name: name, Version: "1-" + name, Number: 1, Hash: name + code, Code: code,
		File: name + ".js"}
	w.Limits.Wall, w.Limits.CPU = workers.Millis(patience), workers.Millis(10*time.Second)
	w.KV = map[string]string{"KV": "space"}
	w.Queues = map[string]string{"Q": "jobs", "FULL": "full"}
	w.Services = map[string]string{"OTHER": "other", "NAMED": "other#Named", "NONE": "none", "SELF": name}
	w.Assets = &workers.Assets{Binding: "ASSETS"}
	f.mu.Lock()
	f.workers[name] = w
	f.mu.Unlock()
	if f.cell != nil {
		f.cell.give(w)
	}
}

// run runs a fetch handler and returns its reply as text.
func (f *fleet) run(name, code string, parts *events.Parts) string {
	f.t.Helper()
	f.install(name, code)
	d := &lifecycle.Delivery{Event: events.Event{Kind: events.Fetch, Owner: "acme", Worker: name, ID: name, Parts: parts,
		Request: events.Request{Method: "POST", URL: "http://w.test/"}}, Runs: events.Runs{Attempt: 1}}
	select {
	case r := <-f.start(d):
		return fmt.Sprint(r.Status, " ", string(r.Body))
	case <-time.After(patience):
		f.t.Fatal("the attempt does not end: ", name)
	}
	return ""
}

// other is a worker that others call.
const other = `
import { WorkerEntrypoint } from "cloudflare:workers";
export class Named extends WorkerEntrypoint {
	add(a, b) { return { sum: a + b, at: new Date(5) }; }
	fail() { throw new TypeError("the method failed\n of other"); }
	fetch(r) { return new Response("named " + new URL(r.url).pathname); }
}
export default {
	async fetch(r, env) {
		const u = new URL(r.url);
		switch (u.pathname) {
		case "/throw": throw new RangeError("thrown by other");
		case "/large": return new Response("x".repeat(200000));
		case "/stream": {
			const { readable, writable } = new TransformStream();
			const w = writable.getWriter();
			(async () => { for (let i = 0; i < 5; i++) { await w.write(new TextEncoder().encode("part " + i + " ")); await new Promise((f) => setTimeout(f, 1)); } await w.close(); })();
			return new Response(readable, { headers: { "x-stream": "1" } });
		}
		case "/break": {
			let n = 0;
			return new Response(new ReadableStream({ pull(c) { if (n++ < 3) c.enqueue(new Uint8Array(1000)); else c.error(new Error("broken by other")); } }));
		}
		case "/never": return new Promise(() => { setTimeout(() => {}, 1e6); });
		case "/deep": { const r = await env.SELF.fetch("http://x/deep"); return new Response((await r.text()) + "."); }
		case "/headers": return new Response(null, { status: 299, statusText: "Odd", headers: [["a", "1"], ["b", "\xff"], ["set-cookie", "x=1"], ["set-cookie", "y=2"]] });
		}
		return new Response([r.method, u.pathname + u.search, r.headers.get("x-in"), JSON.stringify(r.cf ?? null), await r.text()].join("|"), { status: 201 });
	},
};`

// handler is the code of a worker whose handler answers with what the body of the function returns, or its error.
func handler(body string) string {
	return `const sum = (b) => { let n = 0; for (const x of new Uint8Array(b)) n = (n * 31 + x) >>> 0; return b.byteLength + ":" + n; };
	const told = (e) => e?.constructor?.name + "/" + e?.name + ": " + e?.message;
	export default { async fetch(request, env, ctx) {
		try { return Response.json(await (async () => {` + body + `})()); } catch (e) { return new Response(told(e), { status: 500 }); }
	} }`
}

// scripts are handlers whose replies are the same in a cell. SERVER is the address of a server, TLS one with TLS, and
// CLOSED one where nothing listens.
var scripts = []struct{ name, body, want string }{
	{"kv", `await env.KV.put("k", "value", { metadata: { a: 1 } }); await env.KV.put("l", "x".repeat(300000));
		return [await env.KV.get("k"), await env.KV.getWithMetadata("k"), (await env.KV.get("l")).length, await env.KV.get("none"),
			(await env.KV.list()).keys.map((k) => k.name), [...(await env.KV.get(["k", "none"])).entries()], await env.KV.delete("k"), await env.KV.get("k")];`, "value"},
	{"kv-large", `await env.KV.put("k", "x".repeat((512 << 10) + 1));`, "413 Value length"},
	{"kv-key", `await env.KV.get("k".repeat(600));`, "KV GET"},
	{"kv-ttl", `await env.KV.put("k", "v", { expirationTtl: -1 });`, "expiration_ttl"},
	{"queue", `await env.Q.send({ a: 1 }); await env.Q.sendBatch([{ body: 1 }, { body: "two" }]); return "sent";`, "sent"},
	{"queue-full", `await env.FULL.send({ a: 1 });`, "the task was not stored: full"},
	{"files", `const r = await env.ASSETS.fetch("http://x/a.txt"); const h = await env.ASSETS.fetch("http://x/a.txt", { method: "HEAD" });
		return [r.status, r.statusText, r.headers.get("content-type"), await r.text(), h.status, h.headers.get("content-length"), await h.text()];`, "the file"},
	{"files-range", `const r = await env.ASSETS.fetch("http://x/a.txt", { headers: { range: "bytes=4-7" } }); return [r.status, await r.text()];`, "206"},
	{"files-long", `return sum(await (await env.ASSETS.fetch("http://x/long")).arrayBuffer());`, "700000:"},
	{"files-redirect", `const r = await env.ASSETS.fetch("http://x/moved"); const m = await env.ASSETS.fetch("http://x/moved", { redirect: "manual" });
		return [r.url, r.redirected, await r.text(), m.status, m.headers.get("location")];`, "302"},
	{"files-none", `const r = await env.ASSETS.fetch("http://x/none?q=%20"); return [r.status, await r.text()];`, "404"},
	{"files-broken", `const r = await env.ASSETS.fetch("http://x/broken"); await r.text();`, "broke off"},
	{"service", `const r = await env.OTHER.fetch("http://x/a%20b?c=d", { method: "PUT", body: "the body", headers: { "x-in": "\xe9" }, cf: { k: "v" } });
		return [r.status, await r.text()];`, "PUT|/a%20b?c=d"},
	{"service-headers", `const r = await env.OTHER.fetch("http://x/headers"); return [r.status, r.statusText, [...r.headers], r.headers.getSetCookie(), await r.text()];`, "Odd"},
	{"service-large", `return (await (await env.OTHER.fetch("http://x/large")).text()).length;`, "200000"},
	{"service-stream", `const r = await env.OTHER.fetch("http://x/stream"); return [r.headers.get("x-stream"), await r.text()];`, "part 4"},
	{"service-upload", `let i = 0; const body = new ReadableStream({ pull(c) { if (i++ < 5) c.enqueue(new TextEncoder().encode("up " + i + " ")); else c.close(); } });
		return await (await env.OTHER.fetch("http://x/up", { method: "POST", body, duplex: "half" })).text();`, "up 5"},
	{"service-throw", `await env.OTHER.fetch("http://x/throw");`, "RangeError/RangeError: thrown by other"},
	{"service-break", `const r = await env.OTHER.fetch("http://x/break"); await r.text();`, "broken by other"},
	{"service-none", `await env.NONE.fetch("http://x/");`, "500"},
	{"service-abort", `const c = new AbortController(); setTimeout(() => c.abort(new Error("given up")), 5); await env.OTHER.fetch("http://x/never", { signal: c.signal });`, "given up"},
	{"service-deep", `return await (await env.OTHER.fetch("http://x/deep")).text();`, "subrequest depth limit exceeded"},
	{"method", `return [await env.NAMED.add(1, 2), await (await env.NAMED.fetch("http://x/p")).text()];`, `"sum":3`},
	{"method-throw", `await env.NAMED.fail();`, "the method failed"},
	{"method-none", `await env.NAMED.nothing();`, "500"},
	{"method-many", `return (await Promise.all(Array.from({ length: 30 }, (_, i) => env.NAMED.add(i, i)))).map((r) => r.sum).join();`, "56,58"},
	{"fetch", `const r = await fetch("SERVER/echo?a=b", { method: "POST", body: "x".repeat(200000), headers: { "x-in": "v" } }); return [r.status, await r.text()];`, "POST /echo?a=b v 200000"},
	{"fetch-long", `return sum(await (await fetch("SERVER/long")).arrayBuffer());`, "700000:"},
	{"fetch-again", `const t = []; for (let i = 0; i < 3; i++) t.push(await (await fetch("SERVER/echo?" + i)).text()); return t;`, "echo?2"},
	{"fetch-tls", `return await (await fetch("TLS/echo?tls")).text();`, "echo?tls"},
	{"fetch-untrusted", `await fetch("UNKNOWN/");`, "not from an authority that is trusted"},
	{"fetch-closed", `await fetch("CLOSED/");`, "connection refused by"},
	{"fetch-guard", `await fetch("http://127.0.0.2:1/");`, "loopback"},
	{"fetch-private", `await fetch("http://10.0.0.1/");`, "private use"},
	{"fetch-break", `await (await fetch("SERVER/break")).text();`, "500"},
	{"fetch-hangup", `await fetch("SERVER/hangup");`, "500"},
	{"fetch-pipe", `const r = await fetch("SERVER/long"); return await (await fetch("SERVER/echo", { method: "PUT", body: r.body, duplex: "half" })).text();`, "700000"},
	{"service-pipe", `const r = await fetch("SERVER/long"); return (await (await env.OTHER.fetch("http://x/up", { method: "PUT", body: r.body, duplex: "half" })).text()).length;`, "200"},
	{"kv-pipe", `const r = await env.OTHER.fetch("http://x/large"); await env.KV.put("p", r.body); return (await env.KV.get("p", "arrayBuffer")).byteLength;`, "200000"},
	{"fetch-abort", `const c = new AbortController(); setTimeout(() => c.abort(new Error("given up")), 5); await fetch("SERVER/never", { signal: c.signal });`, "given up"},
	{"websocket", `const ws = new WebSocket("WS/ws"); ws.binaryType = "arraybuffer"; const got = [];
		await new Promise((f) => ws.addEventListener("open", f));
		const next = () => new Promise((f) => ws.addEventListener("message", (e) => f(e.data), { once: true }));
		ws.send("hello"); got.push(await next()); ws.send(new Uint8Array(100000)); got.push((await next()).byteLength);
		const closed = new Promise((f) => ws.addEventListener("close", (e) => f([e.code, e.reason, e.wasClean]))); ws.send("close");
		return [...got, await closed];`, `4321,"bye"`},
	{"websocket-closes", `const ws = new WebSocket("WS/ws"); await new Promise((f) => ws.addEventListener("open", f));
		const closed = new Promise((f) => ws.addEventListener("close", (e) => f([e.code, e.reason, e.wasClean]))); ws.close(4000, "mine"); return await closed;`, `4000,""`},
	{"websocket-refused", `const ws = new WebSocket("ws://127.0.0.2:1/"); return await new Promise((f) => ws.addEventListener("close", (e) => f([e.code, e.wasClean])));`, "1006"},
}

// testFiles has the files of every worker.
type testFiles struct{}

func (testFiles) ServeFile(rw http.ResponseWriter, r *http.Request, _ *workers.Worker, _ bool) {
	switch r.URL.Path {
	case "/a.txt":
		http.ServeContent(rw, r, "a.txt", time.Unix(1e9, 0), strings.NewReader("the file"))
	case "/long":
		http.ServeContent(rw, r, "long.bin", time.Unix(1e9, 0), bytes.NewReader(long()))
	case "/moved":
		http.Redirect(rw, r, "/a.txt", http.StatusFound)
	case "/broken":
		rw.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(rw, "too short")
	default:
		http.NotFound(rw, r)
	}
}

func long() []byte {
	data := make([]byte, 700_000)
	for i := range data {
		data[i] = byte(i * i >> 3)
	}
	return data
}

// web is the handler of the servers.
func web(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/long":
		_, _ = w.Write(long())
	case "/never":
		<-r.Context().Done()
	case "/break", "/hangup":
		conn, buffered, _ := w.(http.Hijacker).Hijack()
		if r.URL.Path == "/break" {
			_, _ = buffered.WriteString("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort")
			_ = buffered.Flush()
		}
		_ = conn.Close()
	case "/ws":
		up := websocket.Upgrader{}
		conn, err := up.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		for {
			kind, data, err := conn.ReadMessage()
			if err != nil {
				return
			}
			if string(data) == "close" {
				_ = conn.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(4321, "bye"))
				continue
			}
			_ = conn.WriteMessage(kind, data)
		}
	default:
		body, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprint(w, r.Method, " ", r.URL, " ", r.Header.Get("X-In"), " ", len(body))
	}
}

// queues takes tasks, except for the worker full.
type queues struct{ bindings.Caller }

func (queues) Enqueue(_ context.Context, _, worker string, _ []bindings.Message) error {
	if worker == "full" {
		return errors.New("the task was not stored: full")
	}
	return nil
}

// newReal starts what carries out the calls. The replacer puts the addresses of its servers into scripts.
func newReal(t *testing.T) (real, *strings.Replacer) {
	t.Helper()
	nc := natstest.Connect(t, natstest.Start(t))
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	b, err := envbindings.New(nc, js, envbindings.Config{Replicas: 1, KVBytes: 16 << 20, CacheBytes: 8 << 20,
		Log: zerolog.Nop()}, prometheus.NewRegistry())
	require.NoError(t, err)
	s := httptest.NewServer(http.HandlerFunc(web))
	t.Cleanup(s.Close)
	secure := httptest.NewUnstartedServer(http.HandlerFunc(web))
	secure.EnableHTTP2 = true
	secure.StartTLS()
	t.Cleanup(secure.Close)
	roots := x509.NewCertPool()
	roots.AddCert(secure.Certificate())
	unknown := unknownServer(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return real{queues{b}, testFiles{}, roots}, strings.NewReplacer("SERVER", s.URL, "TLS", secure.URL, "UNKNOWN", unknown,
		"WS", "ws"+strings.TrimPrefix(s.URL, "http"), "CLOSED", "http://"+l.Addr().String())
}

// unknownServer is a server whose certificate is from an authority that nobody trusts.
func unknownServer(t *testing.T) string {
	dir := t.TempDir()
	testcert.Write(t, dir, "localhost", 7)
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
	require.NoError(t, err)
	s := httptest.NewUnstartedServer(http.HandlerFunc(web))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return strings.Replace(s.URL, "127.0.0.1", "localhost", 1)
}

// Handlers see no difference between a cell and a process with a network of its own: the same answers, and the same
// errors.
func TestHandlersSeeNoDifference(t *testing.T) {
	t.Parallel()
	r, addresses := newReal(t)
	fleets := []*fleet{newFleet(t, r, false), newFleet(t, r, true)}
	for _, f := range fleets {
		f.install("other", other)
	}
	for _, s := range scripts {
		code := handler(addresses.Replace(s.body))
		without := fleets[0].run(s.name, code, nil)
		require.Contains(t, without, s.want, s.name)
		require.Equal(t, without, fleets[1].run(s.name, code, nil), s.name)
		require.Empty(t, fleets[1].cell.lies, s.name)
	}
	for _, failure := range []error{nil, events.ErrGivenUp} {
		got := make([]string, 0, len(fleets))
		for _, f := range fleets {
			parts := &events.Parts{ID: "p", Live: true, Read: func(_ context.Context, i int) ([]byte, error) {
				if i < 3 {
					return fmt.Appendf(nil, "part %d ", i), nil
				}
				if failure != nil {
					return nil, failure
				}
				return nil, io.EOF
			}}
			got = append(got, f.run("parts", handler(`return await request.text();`), parts))
		}
		require.Contains(t, got[0], map[bool]string{true: "part 2", false: "gave it up"}[failure == nil])
		require.Equal(t, got[0], got[1])
	}
	slices.Sort(fleets[0].lines)
	slices.Sort(fleets[1].lines)
	require.Equal(t, fleets[0].lines, fleets[1].lines, "they log the same")
	c := fleets[1].cell
	require.Eventually(t, func() bool {
		c.server.running.mu.Lock()
		defer c.server.running.mu.Unlock()
		return len(c.server.running.attempts) == 0
	}, patience, time.Millisecond, "what attempts shared is forgotten")
}
