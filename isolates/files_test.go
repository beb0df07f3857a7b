package isolates

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/isolates/bindings"
	"github.com/pinwheel-run/pinwheel/isolates/hostcalls"
)

// testFiles is the Files of a pool under test. It says what it was asked for.
type testFiles struct {
	asked, under, most atomic.Int64
	hold               chan struct{} // /held waits for it
	written            atomic.Int64  // bytes of /endless that were taken
	unread             atomic.Int64  // bytes of /unread
	gone               chan struct{} // closed when the reader of /endless has gone
}

func (f *testFiles) ServeFile(rw http.ResponseWriter, r *http.Request, w *workers.Worker, follows bool) {
	f.asked.Add(1)
	n := f.under.Add(1)
	defer f.under.Add(-1)
	for most := f.most.Load(); n > most; most = f.most.Load() {
		f.most.CompareAndSwap(most, n)
	}
	switch r.URL.Path {
	case "/held":
		<-f.hold
	case "/old":
		rw.Header().Set("Location", "/new")
		rw.WriteHeader(http.StatusTemporaryRedirect)
		return
	case "/loop":
		rw.Header().Set("Location", "https://other.example/loop")
		rw.WriteHeader(http.StatusFound)
		return
	case "/short":
		rw.Header().Set("Content-Length", "10")
		_, _ = io.WriteString(rw, "part")
		return
	case "/unread":
		for ctx := r.Context(); ctx.Err() == nil; {
			n, _ := rw.Write(make([]byte, chunkOfTest))
			f.unread.Add(int64(n))
		}
		return
	case "/endless":
		defer close(f.gone)
		for {
			n, err := rw.Write(make([]byte, 32<<10))
			if f.written.Add(int64(n)); err != nil {
				return
			}
		}
	}
	if tag := r.Header.Get("If-None-Match"); tag != "" {
		rw.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = fmt.Fprintf(rw, "%s %s of %s, follows %v", r.Method, r.URL.RequestURI(), w.Target(), follows)
}

func withFiles(f *testFiles) func(*Config) { return func(c *Config) { c.Files = f } }

// siteWorker has files, as env.ASSETS.
func siteWorker(code string) *workers.Worker {
	w := worker("w", code)
	w.Assets = &workers.Assets{Directory: "dist", Binding: "ASSETS", Files: strings.Repeat("0", 64)}
	return w
}

func TestHandlersReadTheirFiles(t *testing.T) {
	t.Parallel()
	f := &testFiles{}
	inModes(t, func(t *testing.T, b *bench) {
		w := siteWorker(`export default {
			async fetch(request, env) { return env.ASSETS.fetch(request) },
			async task({ payload }, env) {
				const show = (r) => [r.status, r.url, r.redirected, r.headers.get("location")].join(" ");
				const text = async (...a) => { try { const r = await env.ASSETS.fetch(...a); return show(r) + " " + await r.text() } catch (e) { return e.name + ": " + e.message } };
				const { fetch } = env.ASSETS, aborted = AbortSignal.abort(new RangeError("why"));
				return [
					await text("https://any.example/a%2fb?x=1#y"), await text(new URL("http://h/%2e%2e/x")), await text(new Request("http://h/p", { method: "POST", body: "x" })),
					await text("http://h/p", { method: "HEAD" }), await text("http://h/old"), await text("http://h/old", { redirect: "manual" }), await text("http://h/old", { redirect: "error" }),
					await text("/relative"), await text("data:,x"), await text("http://h/", { signal: aborted }), await fetch.call({}, "http://h/").catch((e) => e.name),
					await text("http://h/short"), await text("http://h/p", { headers: { "if-none-match": "x" } }), Object.isFrozen(env.ASSETS), Object.prototype.toString.call(env.ASSETS), await text(),
				];
			} }`)
		require.Equal(t, []any{
			"200 https://any.example/a%2fb?x=1 false  GET /a%2fb?x=1 of acme/w, follows true",
			"200 http://h/x false  GET /x of acme/w, follows true",
			"200 http://h/p false  POST /p of acme/w, follows true",
			"200 http://h/p false  ",
			"200 http://h/new true  GET /new of acme/w, follows true",
			"307 http://h/old false /new ",
			`TypeError: fetch failed: the response is a redirect, and redirect is "error"`,
			"TypeError: new Request: '/relative' is not an absolute URL",
			"TypeError: fetch: 'data:,x' is neither http nor https",
			"RangeError: why", "TypeError",
			"TypeError: fetch failed: the response broke off before it was complete",
			"304 http://h/p false  ", true, "[object Fetcher]", "TypeError: Fetcher.fetch: 1 argument required, but only 0 present",
		}, b.data(b.run(w, task("1"))))
		// What a client asked for is the client's to follow.
		for path, want := range map[string]int{"/old": http.StatusTemporaryRedirect, "/x": http.StatusOK} {
			o := b.run(w, fetch("GET", "http://shop.example"+path, ""))
			require.Nil(t, o.end.Failure)
			require.Equal(t, want, o.reply.Status)
		}
		require.EqualValues(t, 0, f.under.Load())
	}, withFiles(f))
}

// data is what a task returned.
func (b *bench) data(o *outcome) any {
	b.t.Helper()
	require.Nil(b.t, o.end.Failure, "%v", b.lines())
	var doc map[string]any
	require.NoError(b.t, json.Unmarshal(o.reply.Body, &doc))
	return doc["data"]
}

// A redirect stays with the files, wherever it leads: the network is not reached. It ends.
func TestRedirectsOfFilesStayThere(t *testing.T) {
	t.Parallel()
	f := &testFiles{}
	b := newBench(t, withFiles(f))
	w := siteWorker(`export default { async task(_, env) { return env.ASSETS.fetch("http://h/loop").catch((e) => e.message) } }`)
	require.Equal(t, "fetch: more than 20 redirects", b.data(b.run(w, task("1"))))
	require.EqualValues(t, 21, f.asked.Load())
}

// Requests for files count as subrequests: so many in an event, and so many at once.
func TestRequestsForFilesAreSubrequests(t *testing.T) {
	t.Parallel()
	f := &testFiles{hold: make(chan struct{})}
	b := newBench(t, withFiles(f))
	w := siteWorker(`export default { async task(_, env) {
		const out = await Promise.all(Array.from({ length: 10_000 }, () => env.ASSETS.fetch("http://h/held").then((r) => r.text(), (e) => e.message)));
		return [out.filter((t) => t.startsWith("GET")).length, out.filter((t) => t === "fetch failed: too many subrequests: at most 20 per event").length];
	} }`)
	w.Limits.Subrequests, w.Limits.CPU = 20, workers.Millis(20*time.Second)
	o := b.start(w, task("1"))
	require.Eventually(t, func() bool { return f.under.Load() == hostcalls.MaxConcurrent }, patience, time.Millisecond)
	close(f.hold)
	o.wait(t, o.ended)
	require.Equal(t, []any{20., 9980.}, b.data(o))
	require.EqualValues(t, hostcalls.MaxConcurrent, f.most.Load())
	require.Zero(t, b.pool.holdings.Of("acme"))
}

// A file comes as fast as its handler reads it. Of a body that nobody reads, little is read; it is dropped with its
// run.
func TestFilesComeAsTheyAreRead(t *testing.T) {
	t.Parallel()
	f := &testFiles{gone: make(chan struct{}), hold: make(chan struct{})}
	b := newBench(t, withFiles(f))
	w := siteWorker(`let kept; export default { async task(_, env) {
		kept = await env.ASSETS.fetch("http://h/endless");
		await kept.body.getReader().read(); // and no more
		const unread = await env.ASSETS.fetch("http://h/unread");
		await env.ASSETS.fetch("http://h/held");
	} }`)
	o := b.start(w, task("1"))
	require.Eventually(t, func() bool { return f.written.Load() >= hostcalls.UnreadBytes-chunkOfTest }, patience,
		time.Millisecond)
	close(f.hold)
	o.wait(t, o.ended)
	require.Nil(t, o.end.Failure)
	<-f.gone
	require.LessOrEqual(t, f.written.Load(), int64(hostcalls.UnreadBytes+3*chunkOfTest))
	require.LessOrEqual(t, f.unread.Load(), int64(chunkOfTest), "nothing has asked for it")
	require.Eventually(t, func() bool { return b.pool.holdings.Of("acme") == 0 }, patience, time.Millisecond)
}

const chunkOfTest = 32 << 10 // of testFiles

func TestFilesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := siteWorker(`export default { async task(_, env) { return env.ASSETS.fetch("http://h/").catch((e) => e.message) } }`)
	require.Equal(t, "fetch failed: "+bindings.ErrNoFiles.Error(), b.data(b.run(w, task("1"))))
	w = worker("w2", `export default { task(_, env) { return typeof env.ASSETS } }`)
	require.Equal(t, "undefined", b.data(b.run(w, task("1"))))
}
