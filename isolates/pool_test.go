package isolates

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

func TestFetchHandler(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, b *bench) {
		w := worker("hello", `export default { async fetch(request) {
		const { name } = await request.json();
		return Response.json({ hello: name, url: request.url, method: request.method }, { status: 201, headers: { "X-A": "b" } });
	} }`)
		for range 3 {
			o := b.run(w, fetch("POST", "http://hello.acme.pinwheel/a?b=c", `{"name":"Ada"}`))
			require.Nil(t, o.end.Failure, "%v", b.lines())
			require.Equal(t, 201, o.reply.Status)
			require.JSONEq(t, `{"hello":"Ada","url":"http://hello.acme.pinwheel/a?b=c","method":"POST"}`, string(o.reply.Body))
			require.Contains(t, o.reply.Headers, "x-a")
		}
	})
}

func TestTaskHandler(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, b *bench) {
		doc := b.task(`export default { task(event) { return { sum: event.payload.a + event.payload.b, attempt: event.attempt, header: event.headers.get("x-test"), hidden: event.headers.get("nats-msg-id") } } }`, `{"a":1,"b":2}`)
		require.Equal(t, true, doc["success"])
		require.Equal(t, map[string]any{"sum": 3.0, "attempt": 1.0, "header": "yes", "hidden": nil}, doc["data"])
	})
}

func TestScheduledHandler(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, b *bench) {
		o := b.run(worker("w", `export default { scheduled(event) { return [event.scheduledTime, event.cron] } }`),
			&lifecycle.Delivery{Event: events.Event{Kind: events.Scheduled,
				Tick: events.Tick{ScheduledTime: 1234, Cron: "* * * * *"}}})
		require.JSONEq(t, `{"success":true,"data":[1234,"* * * * *"]}`, string(o.reply.Body))
	})
}

func TestListeners(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, b *bench) {
		w := worker("w", `addEventListener("fetch", e => { setTimeout(() => e.respondWith(new Response("late")), 5) });
		addEventListener("task", e => { e.respondWith({ ok: 1 }) })`)
		require.Equal(t, "late", string(b.run(w, fetch("GET", "http://x/", "")).reply.Body))
		require.JSONEq(t, `{"success":true,"data":{"ok":1}}`, string(b.run(w, task("")).reply.Body))
	})
}

func TestReplyComesBeforeWaitUntil(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, b *bench) {
		w := worker("w", `export default { fetch(r, env, ctx) {
		const sleep = ms => new Promise(done => setTimeout(done, ms));
		ctx.waitUntil(sleep(30).then(() => { ctx.waitUntil(sleep(30).then(() => console.log("nested"))) }));
		return new Response("early");
	} }`)
		o := b.start(w, fetch("GET", "http://x/", ""))
		o.wait(t, o.replied)
		require.Zero(t, o.before)
		o.wait(t, o.ended)
		require.Nil(t, o.end.Failure)
		require.Equal(t, []string{"nested"}, b.lines())
	})
}

func TestOthersRunWhileOneWaits(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, b *bench) {
		port, reached, open := gate(t)
		slow := worker("slow", fmt.Sprintf(`export default { async fetch() {
			await fetch("http://127.0.0.1:%d/before"); return new Response("slow") } }`, port))
		quick := worker("quick", `export default { fetch: () => new Response("quick") }`)
		s := b.start(slow, fetch("GET", "http://x/", ""))
		require.Equal(t, "/before", <-reached)
		require.Equal(t, "quick", string(b.run(quick, fetch("GET", "http://x/", "")).reply.Body))
		select {
		case <-s.ended:
			t.Fatal("the slow one did not wait")
		default:
		}
		close(open)
		s.wait(t, s.ended)
		require.Equal(t, "slow", string(s.reply.Body))
	}, loopback)
}

func TestHowAttemptsFail(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		code    string
		reason  events.Reason
		message string
	}{
		"throw":        {`export default { fetch() { throw new TypeError("no") } }`, events.ReasonException, "TypeError: no"},
		"reject":       {`export default { async fetch() { await 1; throw new Error("later") } }`, events.ReasonException, "Error: later"},
		"throw null":   {`export default { fetch() { throw null } }`, events.ReasonException, "null"},
		"not response": {`export default { fetch() { return 1 } }`, events.ReasonException, "not a Response"},
		"no handler":   {`export default { task() {} }`, events.ReasonNoHandler, "fetch"},
		"loop":         {`export default { fetch() { for (;;); } }`, events.ReasonCPU, "CPU time limit of 50ms"},
		"loop later":   {`export default { async fetch() { await 1; for (;;); } }`, events.ReasonCPU, "CPU time limit of 50ms"},
		"microtasks":   {`export default { fetch() { const f = () => Promise.resolve().then(f); return f() } }`, events.ReasonCPU, "CPU time limit of 50ms"},
		"never":        {`export default { fetch() { return new Promise(() => {}) } }`, events.ReasonTimeout, "can never finish"},
		"wall":         {`export default { fetch() { return new Promise(() => setInterval(() => {}, 50)) } }`, events.ReasonTimeout, "wall-clock limit of 300ms"},
		"memory":       {`export default { fetch() { const a = []; for (;;) a.push(new Array(1e5).fill(1.5)) } }`, events.ReasonMemory, "heap limit"},
		"2 GB string":  {`export default { fetch() { return new Response("x".repeat(2 ** 31)) } }`, events.ReasonException, "Invalid string length"},
		"syntax":       {"export default {\n  fetch() { return (; }\n}", events.ReasonException, "w.js:2:21: SyntaxError"},
		"load throws":  {`throw new Error("at load")`, events.ReasonException, "Error: at load"},
		"load hangs":   {`await new Promise(() => {})`, events.ReasonTimeout, "top-level await"},
		"load loops":   {`for (;;);`, events.ReasonCPU, "CPU time limit of LOAD"},
		"timers":       {`export default { fetch() { for (;;) setTimeout(() => {}, 1e6) } }`, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inModes(t, func(t *testing.T, b *bench) {
				w := worker("w", tc.code)
				switch tc.reason {
				case events.ReasonTimeout:
					w.Limits.Wall = workers.Millis(300 * time.Millisecond)
				case events.ReasonCPU, "":
					w.Limits = short
				}
				require.Equal(t, loadCPU, b.pool.load.cpu)
				const limit = 100 * time.Millisecond // the real one is only longer
				b.pool.load.cpu = limit
				if tc.reason == events.ReasonMemory {
					w.Limits = workers.Limits{HeapMB: 16, CPU: workers.Millis(10 * time.Second)}
				}
				o := b.run(w, fetch("GET", "http://x/", ""))
				require.NotNil(t, o.end.Failure)
				if name == "load loops" && o.end.Failure.Reason == events.ReasonTimeout {
					require.Less(t, o.end.CPU, limit, "a machine that is so busy reaches the wall-clock limit first")
					return
				}
				if tc.reason != "" {
					require.Equal(t, tc.reason, o.end.Failure.Reason, o.end.Failure.Message)
				}
				if name == "never" && b.mode == workers.Persistent {
					tc.message = "wall-clock limit" // another event might have resolved it
				}
				require.Contains(t, o.end.Failure.Message, strings.ReplaceAll(tc.message, "LOAD", limit.String()))
				// The thread continues.
				ok := b.run(worker("ok", `export default { fetch: () => new Response("ok") }`), fetch("GET", "http://x/", ""))
				require.Equal(t, "ok", string(ok.reply.Body))
			})
		})
	}
}

func TestWaitUntilIsCutByTheWallClock(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, b *bench) {
		w := worker("w", `export default { fetch(r, env, ctx) { ctx.waitUntil(new Promise(() => setInterval(() => {}, 20))); return new Response("ok") } }`)
		w.Limits.Wall = workers.Millis(200 * time.Millisecond)
		o := b.run(w, fetch("GET", "http://x/", ""))
		require.Equal(t, "ok", string(o.reply.Body))
		require.Nil(t, o.end.Failure)
		require.Contains(t, b.lines()[0], "waitUntil was cut short")
	})
}

func TestContextsAreReusedAndReplaced(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *Config) { c.ContextMaxReuses, c.ContextKeepMB = 3, 0 })
	w := worker("w", `let n = 0; export default { fetch: (r) => { if (r.url.endsWith("boom")) throw 1; return new Response(String(++n)) } }`)
	var got []string
	for range 4 {
		got = append(got, string(b.run(w, fetch("GET", "http://x/", "")).reply.Body))
	}
	require.Equal(t, []string{"1", "2", "3", "1"}, got)
	b.run(w, fetch("GET", "http://x/boom", ""))
	require.Equal(t, "1", string(b.run(w, fetch("GET", "http://x/", "")).reply.Body),
		"a context that failed is not used again")
}

// A context whose isolate is small stays. One that grows is discarded.
func TestContextsThatGrowAreReplaced(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *Config) { c.ContextMaxReuses, c.ContextKeepMB = 10, 24 })
	count := func(code string) (most int) {
		w := worker("w", code)
		for range 100 {
			var doc struct{ Data int }
			require.NoError(t, json.Unmarshal(b.run(w, task("")).reply.Body, &doc))
			most = max(most, doc.Data)
		}
		return most
	}
	require.Equal(t, 100, count(`let n = 0; export default { task: () => ++n }`))
	grows := count(`let n = 0; const kept = []; export default { task() { kept.push(new Array(131072).fill(n + 0.5)); return ++n } }`)
	require.Greater(t, grows, 10)
	require.LessOrEqual(t, grows, 40, "1 MB more with each event")
	require.Positive(t, b.pool.Stats().Discards["reuses"])
}

// A pool closes at once, whatever its workers do.
func TestCloseEndsWhatRuns(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, b *bench) {
		w := worker("w", `export default { fetch() { console.log("in"); for (;;); } }`)
		w.Limits = workers.Limits{CPU: workers.Millis(5 * time.Minute), Wall: workers.Millis(10 * time.Minute)}
		waits := b.start(worker("waits", `export default { fetch: () => new Promise(done => setTimeout(done, 1e6)) }`), fetch("GET", "http://x/", ""))
		loop := b.start(w, fetch("GET", "http://x/", "")) // the last: the thread takes nothing while it is in it
		require.Eventually(t, func() bool {               // the thread has both
			b.mu.Lock()
			defer b.mu.Unlock()
			return len(b.next) == 0
		}, patience, time.Millisecond)
		closed := make(chan struct{})
		go func() { b.close(); close(closed) }()
		loop.wait(t, closed)
		for _, o := range []*outcome{loop, waits} {
			o.wait(t, o.ended)
			require.True(t, o.end.Interrupted)
			require.Nil(t, o.end.Failure)
		}
	})
}

func TestIsolatesAreEvicted(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *Config) { c.MaxIsolates = 2 })
	for i := range 6 {
		w := worker("w", `export default { fetch: () => new Response("ok") }`)
		w.Owner = string(rune('a' + i))
		require.Equal(t, "ok", string(b.run(w, fetch("GET", "http://x/", "")).reply.Body))
	}
	b.close() // from now on no thread appends to closed
	require.Equal(t, []string{"a/w", "b/w", "c/w", "d/w"}, b.closed[:4], "the longest idle goes first")
}

// A thread closes the contexts of one version of a worker, where nothing runs. It says so, also if it has none.
func TestContextsAreClosedOnRequest(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, b *bench) {
		count := func(w *workers.Worker) string { return string(b.run(w, fetch("GET", "http://x/", "")).reply.Body) }
		counts := func(name, version string) *workers.Worker {
			w := worker(name, `let n = 0; export default { fetch: () => new Response(String(++n)) }`)
			w.Version = version
			return w
		}
		w, newer, other := counts("w", "1-a"), counts("w", "2-a"), counts("other", "1-a")
		for range 2 {
			count(w)
			count(newer)
			count(other)
		}
		never := counts("never", "1-a")
		b.pool.CloseContexts(0, w)
		b.pool.CloseContexts(0, never)
		got := []string{count(w), count(newer), count(other)}
		b.close() // from now on no thread appends to closed
		require.Contains(t, b.closed, "acme/never")
		n := b.pool.Stats().Discards["unneeded"]
		switch b.mode {
		case workers.Oneshot:
			require.Equal(t, []string{"1", "1", "1"}, got)
			require.Zero(t, n)
		case workers.Persistent:
			require.Equal(t, []string{"3", "3", "3"}, got, "what it keeps in memory stays")
			require.Zero(t, n)
		case workers.Pinned:
			require.Equal(t, []string{"1", "3", "3"}, got)
			require.EqualValues(t, 1, n)
			require.Contains(t, b.closed, "acme/w")
		case workers.Shared: // the isolate is the thread's only while something runs in it
		}
	}, func(c *Config) { c.Threads = 1 })
}

// A context in which something runs is not closed.
func TestBusyContextsAreNotClosedOnRequest(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer server.Close()
	b := newBench(t, func(c *Config) {
		c.Threads, c.AllowAddresses = 1, []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	})
	w := worker("w", `let n = 0; export default { fetch(r, env, ctx) {
		if (!n++) ctx.waitUntil(fetch(env.URL));
		return new Response(String(n));
	} }`)
	w.Vars = map[string]string{"URL": server.URL}
	long := b.start(w, fetch("GET", "http://x/", ""))
	<-long.replied
	b.pool.CloseContexts(0, w)
	other := worker("other", `export default { fetch: () => new Response("ok") }`)
	// the thread has seen the request
	require.Equal(t, "ok", string(b.run(other, fetch("GET", "http://x/", "")).reply.Body))
	close(release)
	<-long.ended
	require.Nil(t, long.end.Failure)
	require.Equal(t, "2", string(b.run(w, fetch("GET", "http://x/", "")).reply.Body))
}

func TestQueues(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, b *bench) {
		w := worker("w", `export default { async fetch(r, env) { await env.JOBS.send({ a: 1 }); try { await env.FULL.send("x"); } catch (e) { return new Response(e.message) } } }`)
		w.Queues = map[string]string{"JOBS": "jobs", "FULL": "full"}
		o := b.run(w, fetch("GET", "http://x/", ""))
		require.Nil(t, o.end.Failure)
		require.Contains(t, string(o.reply.Body), "full")
		require.Equal(t, `{"a":1}`, string(b.sent[0].Body))
		require.Equal(t, "application/json", b.sent[0].ContentType)
	})
}

func TestQueuesDelay(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := worker("w", `export default { async fetch(r, env) {
		const order = [];
		const options = Object.defineProperties({}, Object.fromEntries(["headers", "delaySeconds", "contentType"].map((name) => [name, {
			get() { order.push(name); return { headers: { "X-A": "b" }, delaySeconds: { valueOf: () => 1.5 }, contentType: "text" }[name] },
		}])));
		await env.JOBS.send("x", options);
		await env.JOBS.send("y", { delaySeconds: 31622400 });
		await env.JOBS.send("z", { delaySeconds: undefined });
		const errors = [];
		for (const delaySeconds of [-1, NaN, Infinity, 31622401, "soon", null, 1n, Symbol()]) {
			try { await env.JOBS.send("x", { delaySeconds }); errors.push("sent") } catch (e) { errors.push(e.name) }
		}
		return Response.json([order, errors]);
	} }`)
	w.Queues = map[string]string{"JOBS": "jobs"}
	o := b.run(w, fetch("GET", "http://x/", ""))
	require.Nil(t, o.end.Failure)
	require.JSONEq(t, `[["contentType","delaySeconds","headers"],
		["RangeError","RangeError","RangeError","RangeError","RangeError","sent","TypeError","TypeError"]]`, string(o.reply.Body))
	require.Equal(t, []string{"x-a", "b", "Deliver-After", "1.5"}, b.sent[0].Headers)
	require.Equal(t, []string{"Deliver-After", "31622400"}, b.sent[1].Headers)
	require.Empty(t, b.sent[2].Headers)
}

// A batch is any iterable of messages. What is wrong with one of them is known before any is sent.
func TestQueueBatches(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := worker("w", `export default { async fetch(r, env) {
		await env.JOBS.sendBatch(new Set([{ body: "ü", contentType: "text" }, { body: new Uint8Array([1, 2]), delaySeconds: 3 }, { body: { a: 1 }, headers: { "X-A": "b" } }]), { delaySeconds: 2 });
		const refused = [];
		const one = { body: 1 };
		for (const [batch, options] of [[[]], [], [1], [[1]], [{}], [[one, { body: () => 1 }]], [[one, { body: 1, contentType: "v9" }]], [[one, { body: 1, delaySeconds: -1 }]],
			[Array(101).fill(one)], [[{ body: "x".repeat(200000) }, { body: "x".repeat(70000) }]], [[one, { body: 1, headers: { "a b": "c" } }]], [[one], 5],
			[(function* () { for (;;) yield one })()]]) {
			try { await env.JOBS.sendBatch(batch, options); refused.push("sent") } catch (e) { refused.push(e.constructor.name) }
		}
		return Response.json(refused);
	} }`)
	w.Queues = map[string]string{"JOBS": "jobs"}
	o := b.run(w, fetch("GET", "http://x/", ""))
	require.Nil(t, o.end.Failure)
	require.JSONEq(t, `["TypeError","TypeError","TypeError","TypeError","TypeError","TypeError","TypeError","RangeError","Error","Error","TypeError","TypeError","Error"]`,
		string(o.reply.Body))
	require.Equal(t, []Message{
		{Body: []byte("ü"), ContentType: "text/plain;charset=UTF-8", Headers: []string{"Deliver-After", "2"}},
		{Body: []byte{1, 2}, ContentType: "application/octet-stream", Headers: []string{"Deliver-After", "3"}},
		{Body: []byte(`{"a":1}`), ContentType: "application/json", Headers: []string{"x-a", "b", "Deliver-After", "2"}},
	}, b.sent)
}

// A batch counts as as many sends as it has messages, and one that is too many is not sent at all.
func TestQueueBatchesAreSends(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := worker("w", `export default { async fetch(r, env) {
		const batch = (n) => env.JOBS.sendBatch(Array(n).fill({ body: 1 })).then(() => "sent", (e) => e.message);
		return Response.json([await batch(6), await batch(5), await batch(4), await batch(1)]);
	} }`)
	w.Queues, w.Limits.Sends = map[string]string{"JOBS": "jobs"}, 10
	o := b.run(w, fetch("GET", "http://x/", ""))
	const many = `"too many sends: at most 10 per event (limits.sends)"`
	require.JSONEq(t, `["sent",`+many+`,"sent",`+many+`]`, string(o.reply.Body))
	require.Len(t, b.sent, 10)
	b.holdsNothing()
}

// A queue sends what it was given, and only to its worker, whatever a handler has replaced.
func TestQueueForged(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := worker("w", `
	let seen = 0;
	for (const name of ["push", "concat", "map"]) Array.prototype[name] = function () { seen++ };
	for (const i of [0, 1, 2]) Object.defineProperty(Object.prototype, i, { set(v) { seen++ }, configurable: true });
	Uint8Array.prototype.set = Map.prototype.set = Map.prototype.get = () => { seen++ };
	const once = (body) => ({ [Symbol.iterator]: () => { let done = true; return { next: () => ({ value: { body }, done: done = !done }) } } });
	export default { async fetch(r, env) {
		await env.JOBS.sendBatch(once("a"));
		let tries = "";
		const attempt = async (f) => { try { await f(); tries += "sent " } catch (e) { tries += e.constructor.name + " " } };
		const { sendBatch, constructor: Class } = env.JOBS;
		await attempt(() => sendBatch.call({}, once(1)));
		await attempt(() => sendBatch.call(undefined, once(1)));
		await attempt(() => new Class({}, "other").sendBatch(once(1)));
		await attempt(() => Object.create(env.JOBS).sendBatch(once(1)));
		return new Response(tries + seen);
	} }`)
	w.Queues = map[string]string{"JOBS": "jobs"}
	o := b.run(w, fetch("GET", "http://x/", ""))
	require.NotNil(t, o.reply, o.end.Failure)
	require.Equal(t, "TypeError TypeError TypeError TypeError 0", string(o.reply.Body))
	require.Equal(t, []Message{{Body: []byte("a"), ContentType: "text/plain;charset=UTF-8", Headers: []string{}}}, b.sent)
}

func BenchmarkFetchJSON(bm *testing.B) {
	b := newBench(bm)
	w := worker("w", `export default { async fetch(request) { const x = await request.json(); return Response.json({ ok: true, id: x.id, user: x.user }) } }`)
	body := `{"id":1,"user":{"name":"Ada Lovelace","email":"ada@example.test","roles":["admin","ops"]},"note":"` + string(make([]byte, 0)) + `"}`
	b.run(w, fetch("POST", "http://x/", body))
	for bm.Loop() {
		const batch = 64
		outs := make([]*outcome, batch)
		for i := range outs {
			outs[i] = b.start(w, fetch("POST", "http://x/", body))
		}
		for _, o := range outs {
			<-o.ended
		}
	}
	bm.ReportMetric(float64(bm.Elapsed().Nanoseconds())/float64(bm.N)/64, "ns/event")
}

// Of very many rejections only a part is reported. Only reports are lost.
func TestRejectionsAreReportedToABound(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := worker("w", `export default { fetch() { for (let i = 0; i < 900; i++) Promise.reject(i); return new Response("ok") } }`)
	require.Equal(t, "ok", string(b.run(w, fetch("GET", "http://x/", "")).reply.Body))
	require.Len(t, b.lines(), 100)
}

// An End says whether the run waited for anything. Promises that settle at once do not count.
func TestEndSaysWhetherTheRunWaited(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, b *bench) {
		w := worker("w", `export default { async fetch(request) {
			const text = await request.text();
			if (text === "wait") await new Promise((done) => setTimeout(done, 1));
			return new Response(text);
		} }`)
		for _, body := range []string{"go on", "wait", "go on"} {
			o := b.run(w, fetch("POST", "http://x/", body))
			require.Equal(t, body, string(o.reply.Body))
			require.Equal(t, body == "wait", o.end.Waited)
		}
	})
}

// A thread that is woken and has no free slot says so: another thread has to take what waits.
func TestWokenThreadWithoutASlotSaysSo(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *Config) { c.Slots = 1 })
	o := b.start(worker("w", `export default { task: () => new Promise((done) => setTimeout(done, 1e6)) }`), task("null"))
	require.Eventually(t, func() bool {
		b.pool.Wake(0)
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.busy > 0
	}, patience, time.Millisecond)
	b.close()
	o.wait(t, o.ended)
}
