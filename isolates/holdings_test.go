package isolates

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/isolates/holdings"
)

// hoarder is a server that sends and receives as much as requested, slowly.
func hoarder(t *testing.T) *httptest.Server {
	mux, gone := http.NewServeMux(), make(chan struct{})
	flood := func(w io.Writer) {
		for range 60 << 4 {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				return
			}
		}
	}
	mux.HandleFunc("/flood", func(w http.ResponseWriter, _ *http.Request) { flood(w) })
	mux.HandleFunc("/events", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		flood(w)
	})
	mux.HandleFunc("/never", func(_ http.ResponseWriter, r *http.Request) {
		select { // if the body of a request is not read, the server does not see that the client gave up
		case <-r.Context().Done():
		case <-gone:
		}
	})
	mux.HandleFunc("/ws", func(w http.ResponseWriter, r *http.Request) {
		c, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer func() { _ = c.Close() }()
		for r.URL.RawQuery == "flood" && c.WriteMessage(websocket.BinaryMessage, make([]byte, 1<<20)) == nil {
			continue
		}
		<-gone
	})
	s := httptest.NewServer(mux)
	t.Cleanup(func() {
		close(gone)
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// sampledCalls is how many of the calls of TestHostCallsAreBounded a run makes without the tag hostile.
const sampledCalls = 3

// Whatever a handler requests, the process does not take much more memory than its limits: 64 MB of heap, as much of
// ArrayBuffers and as much outside both. Each of these cases took hundreds of megabytes when nothing was charged.
// Without the tag hostile it runs a sample.
func TestHostCallsAreBounded(t *testing.T) {
	// The bound includes what Go's collector leaves until its next run, and the allocators of V8 and the system.
	const mb, bound = 64, 450 << 20
	s := hoarder(t)
	calls := map[string]string{
		"request bodies, text":       `for (let i = 0; i < 40; i++) go(fetch(url + "/never", { method: "POST", body: "x".repeat(30e6) + i }))`,
		"request bodies, bytes":      `for (let i = 0; i < 40; i++) { go(fetch(url + "/never", { method: "POST", body: new Uint8Array(8e6) })); await tick() }`,
		"request bodies, streams":    `for (let i = 0; i < 40; i++) go(fetch(url + "/never", { method: "POST", duplex: "half", body: new ReadableStream({ pull(c) { c.enqueue(new Uint8Array(1e6)) } }) })), await tick()`,
		"request bodies, Blobs":      `const b = new Blob([new Uint8Array(15e6)]); for (let i = 0; i < 40; i++) { go(fetch(url + "/never", { method: "POST", body: b })); await tick() }`,
		"request headers":            `for (let i = 0; i < 45; i++) { go(fetch(url + "/never", { headers: { a: "x".repeat(9e6) } })); await tick() }`,
		"request URLs":               `for (let i = 0; i < 45; i++) { go(fetch(url + "/never?" + "x".repeat(200e3))) ; await tick() }`,
		"responses, unread":          `for (let i = 0; i < 45; i++) go(fetch(url + "/flood")); await wait(300)`,
		"responses, a busy thread":   `for (let i = 0; i < 6; i++) go(fetch(url + "/flood")); await wait(50); spin(1500)`,
		"responses, cloned":          `for (let i = 0; i < 6; i++) go(fetch(url + "/flood").then((r) => r.clone().text())); await wait(300)`,
		"EventSource":                `for (let i = 0; i < 6; i++) go(new EventSource(url + "/events")); await wait(50); spin(500); await wait(100)`,
		"WebSocket, sent":            `for (let i = 0; i < 16; i++) { const w = go(new WebSocket(url + "/ws")); w.onopen = () => { for (let j = 0; j < 7; j++) w.send(new Uint8Array(1e6)) } } await wait(800)`,
		"WebSocket, received":        `for (let i = 0; i < 16; i++) go(new WebSocket(url + "/ws?flood")); await wait(50); spin(700); await wait(100)`,
		"WebSocket, protocols":       `for (let i = 0; i < 40; i++) go(new WebSocket(url + "/ws", ["x".repeat(5e6)]))`,
		"send":                       `for (let i = 0; i < 1000; i++) { go(env.NEVER.send("x".repeat(1e6))); if (i % 20 === 0) await tick() }`,
		"send, very many":            `for (let i = 0; i < 30000; i++) { go(env.NEVER.send("x")); if (i % 5000 === 0) await tick() }`,
		"send, headers":              `for (let i = 0; i < 100; i++) { go(env.NEVER.send("x", { headers: { a: "x".repeat(8e6) } })); await tick() }`,
		"crypto.subtle, digests":     `const d = new Uint8Array(12e6); for (let i = 0; i < 60; i++) { go(crypto.subtle.digest("SHA-512", d)); await tick() }`,
		"crypto.subtle, encryption":  `const k = await crypto.subtle.generateKey({ name: "AES-GCM", length: 256 }, false, ["encrypt"]), d = new Uint8Array(12e6); for (let i = 0; i < 60; i++) { go(crypto.subtle.encrypt({ name: "AES-GCM", iv: new Uint8Array(12) }, k, d)); await tick() }`,
		"crypto.subtle, keys":        `for (let i = 0; i < 20; i++) { go(crypto.subtle.importKey("spki", new Uint8Array(30e6), { name: "RSA-PSS", hash: "SHA-256" }, true, ["verify"])); await tick() }`,
		"crypto.subtle, comparisons": `const d = new Uint8Array(30e6); for (let i = 0; i < 5; i++) crypto.subtle.timingSafeEqual(d, d)`,
		"compression":                `for (let i = 0; i < 16; i++) { const w = new CompressionStream("gzip").writable.getWriter(); for (let j = 0; j < 5; j++) go(w.write(new Uint8Array(1e6))) } await wait(200)`,
		"decompression":              `const zeros = await new Response(new Blob([new Uint8Array(20e6)]).stream().pipeThrough(new CompressionStream("gzip"))).bytes(); for (let i = 0; i < 16; i++) { const w = new DecompressionStream("gzip").writable.getWriter(); go(w.write(zeros)) } await wait(500)`,
		"TextDecoder, legacy":        `const d = new Uint8Array(30e6).fill(0x81); for (let i = 0; i < 4; i++) go(new TextDecoder("shift_jis").decode(d))`,
		"TextDecoder, UTF-8":         `const d = new Uint8Array(30e6).fill(0x41); for (let i = 0; i < 10; i++) new TextDecoder().decode(d)`,
		"TextEncoder":                `for (let i = 0; i < 10; i++) new TextEncoder().encode("x".repeat(25e6))`,
		"structuredClone":            `const d = new Uint8Array(20e6); for (let i = 0; i < 20; i++) structuredClone(d)`,
		"messages between ports":     `const { port1, port2 } = new MessageChannel(); port2.onmessage = () => {}; for (let i = 0; i < 100; i++) { port1.postMessage(new Uint8Array(2e6)) } await wait(50)`,
		"messages of channels":       `const from = new BroadcastChannel("x"); for (let i = 0; i < 20; i++) new BroadcastChannel("x").onmessage = () => {}; for (let i = 0; i < 10; i++) from.postMessage(new Uint8Array(1e6)); await wait(50)`,
		"object URLs":                `for (let i = 0; i < 100; i++) URL.createObjectURL(new Blob([new Uint8Array(2e6)])); await wait(1)`,
		"console":                    `for (let i = 0; i < 30; i++) console.log("x".repeat(20e6)), console.log({ a: "x".repeat(20e6) })`,
		"errors nobody catches":      `for (let i = 0; i < 30; i++) { go(Promise.reject(new Error("x".repeat(20e6)))); await tick() }`,
		"reportError":                `for (let i = 0; i < 30; i++) { reportError("x".repeat(20e6)); await tick() }`,
		"waitUntil that fails":       `for (let i = 0; i < 30; i++) { ctx.waitUntil(Promise.reject(new Error("x".repeat(20e6)))); await tick() }`,
		"result":                     `return "x".repeat(50e6)`,
		"failure":                    `throw new Error("x".repeat(50e6))`,
		"names in Headers":           `for (let i = 0; i < 4; i++) new Headers({ ["x".repeat(10e6)]: "y" })`,
		"timers":                     `for (let i = 0; i < 9000; i++) setTimeout(() => {}, 1e6, "x".repeat(100))`,
		"randomness":                 `for (let i = 0; i < 20; i++) for (let j = 0; j < 50; j++) crypto.getRandomValues(new Uint8Array(65536))`,
		"domains":                    `for (let i = 0; i < 10; i++) URL.canParse("http://" + "é".repeat(100) + i)`,
		"URLs":                       `for (let i = 0; i < 5; i++) URL.canParse("http://x/" + "é".repeat(2e6))`,
		"FormData":                   `for (let i = 0; i < 10; i++) { const f = new FormData(); f.append("a", new Blob([new Uint8Array(10e6)])); go(new Response(f).bytes()) }`,
	}
	for _, name := range sampled(t, slices.Sorted(maps.Keys(calls)), sampledCalls) {
		t.Run(name, func(t *testing.T) {
			body := calls[name]
			b := newBench(t, loopback)
			w := worker("hoards",
				`const kept = [], go = (x) => { kept.push(x); if (x && typeof x.catch === "function") x.catch(() => {}); return x };
				const wait = (ms) => scheduler.wait(ms), tick = () => wait(0), spin = (ms) => { for (const end = performance.now() + ms; performance.now() < end;); };
				export default { async task({ payload: url }, env, ctx) { `+body+`; return kept.length } }`)
			w.Queues = map[string]string{"NEVER": "never"}
			w.Limits = workers.Limits{HeapMB: mb, CPU: workers.Millis(10 * time.Second), Wall: workers.Millis(20 * time.Second)}
			require.Nil(t, b.run(worker("warm", `export default { task() {} }`), task("1")).end.Failure)
			debug.FreeOSMemory()
			before := rss(t)
			most := peak(t, func() {
				o := b.start(w, task(fmt.Sprintf("%q", s.URL)))
				o.wait(t, o.ended)
			})
			require.Less(t, most-before, bound)
			require.Zero(t, b.held(), "what is over holds nothing")
			t.Logf("%d MB", (most-before)>>20)
		})
	}
}

// peak returns the most memory that the process has while f runs.
func peak(t *testing.T, f func()) int {
	done, most := make(chan struct{}), make(chan int)
	go func() {
		m := rss(t)
		for look := time.NewTicker(tick); ; {
			select {
			case <-look.C:
				m = max(m, rss(t))
			case <-done:
				look.Stop()
				most <- m
				return
			}
		}
	}()
	f()
	close(done)
	return <-most
}

// Bounds of what a run, its owner and the process may hold.
func TestHold(t *testing.T) {
	b := newBench(t, func(c *Config) { c.HeapMB, c.OwnerHeapMB = 100, 60 })
	of := func(owner string) *run {
		return &run{
			holder:  holdings.Holder{Tenant: owner},
			attempt: &lifecycle.Attempt{Worker: &workers.Worker{Owner: owner}},
			limits:  workers.Limits{HeapMB: 40},
		}
	}
	p, a, a2, other, third := b.pool, of("acme"), of("acme"), of("other"), of("third")
	require.NoError(t, p.hold(a, 40<<20))
	require.ErrorContains(t, p.hold(a, 1), "1 bytes are too much: the event holds 41943040 outside of its heap, of 41943040 at most (limits.heapMB)")
	require.NoError(t, p.hold(a2, 20<<20))
	require.ErrorContains(t, p.hold(a2, 1), "the owner's events hold all that they may in this process, 62914560 bytes")
	require.NoError(t, p.hold(other, 35<<20))
	require.ErrorContains(t, p.hold(third, 35<<20), "the process has no memory for them now")
	p.drop(a, 40<<20)
	require.NoError(t, p.hold(third, 35<<20))
	p.drop(a2, 20<<20)
	p.drop(other, 35<<20)
	p.drop(third, 35<<20)
	require.Zero(t, p.holdings.Tenants())
	require.Zero(t, p.inUse()-p.charged())
}

// Held bytes count when room is made for isolates: an owner that holds its share gets no other isolate.
func TestHeldBytesAreOfTheOwnersShare(t *testing.T) {
	b := newBench(t, func(c *Config) { c.OwnerHeapMB, c.ContextsPerIsolate = 150, 1 })
	w := worker("holds", `export default { async task(e, env) { for (let i = 0; i < 30; i++) env.NEVER.send("x".repeat(1e6)).catch(() => {}); await new Promise((done) => setTimeout(done, 400)); return "held" } }`)
	w.Queues, w.Limits.CPU = map[string]string{"NEVER": "never"}, workers.Millis(time.Minute) // copying is charged, too
	holds := b.start(w, task("1"))
	require.Eventually(t, func() bool { return b.pool.holdings.Of("acme") > 20<<20 }, patience, time.Millisecond)
	_, use := b.pool.use("acme")
	require.Greater(t, use, int64(20<<20))
	stranger := worker("stranger", `export default { task: () => "ok" }`)
	stranger.Owner = "beta"
	require.Nil(t, b.run(stranger, task("1")).end.Failure, "others are not asked to wait")
	holds.wait(t, holds.ended)
	require.Nil(t, holds.end.Failure)
	require.True(t, strings.Contains(string(holds.reply.Body), "held"))
	require.Zero(t, b.held())
}
