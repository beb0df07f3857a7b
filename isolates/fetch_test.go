package isolates

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// loopback lets fetch() reach test servers.
func loopback(c *Config) { c.AllowAddresses = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} }

func testServer(t *testing.T) *httptest.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Set-Cookie", "a=1")
		w.Header().Add("Set-Cookie", "b=2")
		w.WriteHeader(http.StatusTeapot)
		_, _ = fmt.Fprintf(w, "%s %s %s", r.Method, r.Header.Get("X-A"), r.URL.Path)
	})
	mux.Handle("/redirect", http.RedirectHandler("/echo", http.StatusFound))
	mux.HandleFunc("/slow", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("/big", func(w http.ResponseWriter, _ *http.Request) {
		_,
			_ = w.Write([]byte(strings.Repeat("x", 300<<10)))
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func TestFetchOut(t *testing.T) {
	t.Parallel()
	s := testServer(t)
	b := newBench(t, loopback)
	doc := b.task(`export default { async task(event) {
		const base = event.payload;
		const echo = await fetch(base + "/echo", { method: "PUT", headers: { "X-A": "b" }, body: "c" });
		const redirected = await fetch(base + "/redirect");
		const manual = await fetch(base + "/redirect", { redirect: "manual" });
		let refused; try { await fetch(base + "/redirect", { redirect: "error" }) } catch (e) { refused = e.name }
		const big = (await (await fetch(base + "/big")).text()).length;
		let aborted; try { await fetch(base + "/slow", { signal: AbortSignal.timeout(30) }) } catch (e) { aborted = e.name }
		return { echo: [echo.status, await echo.text(), echo.headers.getSetCookie()], redirected: [redirected.redirected, redirected.url], manual: [manual.type, manual.status], refused, big, aborted };
	} }`, `"`+s.URL+`"`)
	require.Equal(t, map[string]any{
		"echo":       []any{418.0, "PUT b /echo", []any{"a=1", "b=2"}},
		"redirected": []any{true, s.URL + "/echo"},
		"manual":     doc["data"].(map[string]any)["manual"],
		"refused":    "TypeError", "big": float64(300 << 10), "aborted": "TimeoutError",
	}, doc["data"])
}

func TestFetchOutIsGuarded(t *testing.T) {
	t.Parallel()
	s := testServer(t)
	b := newBench(t)
	doc := b.task(`export default { async task(event) {
		const out = [];
		for (const url of event.payload) { try { await fetch(url); out.push("reached") } catch (e) { out.push(e.name + ": " + e.message) } }
		return out;
	} }`, fmt.Sprintf(`[%q, "http://[::1]:1/", "http://169.254.169.254/latest", "http://10.0.0.1/", "http://localhost:1/", "http://0.0.0.0:1/", "http://[::ffff:127.0.0.1]:1/", "http://2130706433:1/", "file:///etc/passwd"]`, s.URL))
	for _, line := range doc["data"].([]any) {
		require.Contains(t, line, "TypeError")
	}
	require.Contains(t, doc["data"].([]any)[0], "not allowed")
}

func TestSubrequestsAreLimited(t *testing.T) {
	t.Parallel()
	s := testServer(t)
	b := newBench(t, loopback)
	w := worker("w", `export default { async task(event) { const all = await Promise.allSettled(Array.from({ length: 12 }, () => fetch(event.payload + "/echo"))); return all.map(r => r.status) } }`)
	w.Limits.Subrequests = 10
	o := b.run(w, task(`"`+s.URL+`"`))
	require.Nil(t, o.end.Failure)
	require.Equal(t, 10, strings.Count(string(o.reply.Body), "fulfilled"))
	require.Equal(t, 2, strings.Count(string(o.reply.Body), "rejected"))
}

// A run that sends more tasks than allowed gets an error for each further one. The tasks that it sent before are
// stored.
func TestSendsAreLimited(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := worker("w", `export default { async task(event, env) {
		const all = await Promise.allSettled(Array.from({ length: 12 }, (_, i) => env.JOBS.send(i)));
		return all.map(r => r.status + (r.reason ? ": " + r.reason.message : ""));
	} }`)
	w.Queues = map[string]string{"JOBS": "jobs"}
	w.Limits.Sends = 10
	for range 2 { // each run has its own limit
		o := b.run(w, task("1"))
		require.Nil(t, o.end.Failure)
		require.Equal(t, 10, strings.Count(string(o.reply.Body), "fulfilled"))
		require.Equal(t, 2, strings.Count(string(o.reply.Body), "rejected: too many sends: at most 10 per event (limits.sends)"))
	}
	require.Len(t, b.sent, 20)
}

// Late answers to an event must not reach the next event in the same context.
func TestLateAnswersReachNothing(t *testing.T) {
	t.Parallel()
	s := testServer(t)
	b := newBench(t, loopback)
	w := worker("w", `let late = []; export default { fetch(request) {
		const first = late.length === 0;
		late.push(first ? "first" : "next");
		if (first) { setTimeout(() => late.push("timer"), 10); setInterval(() => late.push("interval"), 5); fetch("`+s.URL+`/echo").then(() => late.push("fetch")); return new Response("ok") }
		return new Promise(done => setTimeout(() => done(new Response(late.join())), 100));
	} }`)
	b.run(w, fetch("GET", "http://x/", ""))
	o := b.run(w, fetch("GET", "http://x/", ""))
	require.Equal(t, "first,next", string(o.reply.Body))
}

// A run that passes its CPU time loses its context. What else runs in its isolate goes on. A run that passes its memory
// takes the isolate with it.
func TestKillTakesTheContextNotTheNeighbours(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	sleeper := worker("sleeper", `export default { fetch: () => new Promise(done => setTimeout(() => done(new Response("slept")), 500)) }`)
	other := worker("other", sleeper.Code)
	other.Owner = "other"
	same, foreign := b.begin(sleeper, fetch("GET", "http://x/", "")), b.begin(other, fetch("GET", "http://x/", ""))
	loops := worker("loop", `export default { fetch() { for (;;); } }`)
	loops.Limits = short
	loop := b.run(loops, fetch("GET", "http://x/", ""))
	require.Equal(t, events.ReasonCPU, loop.end.Failure.Reason)
	same.wait(t, same.ended)
	require.False(t, same.end.Interrupted)
	require.Equal(t, "slept", string(same.reply.Body), "it shared the isolate")
	same = b.begin(worker("never", `export default { fetch: () => new Promise(() => setTimeout(() => {}, 1e8)) }`), fetch("GET", "http://x/", ""))
	grows := worker("grows", `const a = []; export default { fetch() { for (;;) a.push(new Array(1e5).fill(1.5)) } }`)
	grows.Limits.CPU = ample
	grown := b.run(grows, fetch("GET", "http://x/", ""))
	require.Equal(t, events.ReasonMemory, grown.end.Failure.Reason)
	same.wait(t, same.ended)
	require.True(t, same.end.Interrupted, "it shared the isolate, and runs again")
	foreign.wait(t, foreign.ended)
	require.Equal(t, "slept", string(foreign.reply.Body))
}

func TestParkedThreadIsReplaced(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := worker("w", `export default { fetch: () => new Response("a".repeat(2 ** 27).match(/a/g).length) }`)
	w.Limits.CPU = workers.Millis(time.Minute)
	o := b.run(w, fetch("GET", "http://x/", ""))
	require.NotNil(t, o.end.Failure)
	require.Equal(t, events.ReasonMemory, o.end.Failure.Reason)
	require.EqualValues(t, 1, b.pool.losses.parked.Load())
	ok := b.run(worker("ok", `export default { fetch: () => new Response("ok") }`), fetch("GET", "http://x/", ""))
	require.Equal(t, "ok", string(ok.reply.Body))
}
