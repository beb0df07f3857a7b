package isolates

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// The modes differ in the state that one event leaves and the next one finds.
func TestStateBetweenEvents(t *testing.T) {
	t.Parallel()
	want := map[workers.Mode]string{
		workers.Pinned:     `[[1,1],[2,1],[3,1]]`, // the next event may find the module's state, or may not
		workers.Shared:     `[[1,1],[2,1],[3,1]]`,
		workers.Oneshot:    `[[1,1],[1,1],[1,1]]`,
		workers.Persistent: `[[1,1],[2,2],[3,3]]`,
	}
	inModes(t, func(t *testing.T, b *bench) {
		w := worker("w", `let n = 0; export default { task() { shared.n = (shared.n ?? 0) + 1; return [++n, shared.n] } }`)
		var got []json.RawMessage
		for range 3 {
			var doc struct{ Data json.RawMessage }
			require.NoError(t, json.Unmarshal(b.run(w, task("")).reply.Body, &doc))
			got = append(got, doc.Data)
		}
		text, err := json.Marshal(got)
		require.NoError(t, err)
		require.JSONEq(t, want[b.mode], string(text))
	})
}

// A failure ends the state of a context in every mode but persistent: there the state belongs to other events, too.
func TestStateAfterAFailure(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, b *bench) {
		w := worker("w", `let n = 0; export default { fetch(r) { n++; if (r.url.endsWith("boom")) throw 1; return new Response(String(n)) } }`)
		b.run(w, fetch("GET", "http://x/", ""))
		require.NotNil(t, b.run(w, fetch("GET", "http://x/boom", "")).end.Failure)
		want := "1"
		if b.mode == workers.Persistent {
			want = "3"
		}
		require.Equal(t, want, string(b.run(w, fetch("GET", "http://x/", "")).reply.Body))
	})
}

// The isolates of mode shared move between threads; those of mode pinned do not.
func TestSharedIsolatesAreTheProcesss(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *Config) { c.Threads, c.ContextMaxReuses = 4, 1_000_000 })
	b.mode = workers.Shared
	w := worker("w", `let n = 0; export default { fetch: () => new Response(String(++n)) }`)
	threads := map[int]bool{}
	for n := 1; len(threads) < 2; n++ {
		require.Less(t, n, 10_000, "only one thread takes events")
		o := b.run(w, fetch("GET", "http://x/", ""))
		require.Equal(t, fmt.Sprint(n), string(o.reply.Body), "one context has seen all events")
		threads[o.thread] = true
		require.Eventually(t, func() bool { return b.pool.shared.len() == 1 }, patience, time.Millisecond,
			"the thread gives it back")
	}
	s := b.pool.Stats()
	require.Equal(t, 1, s.Contexts)
	require.EqualValues(t, 1, s.ColdStarts)
	require.Equal(t, "acme", s.Owners[0].Owner)
}

// len says how many isolates no thread has. The statistics count an isolate as idle before its thread gives it back.
func (c *sharedPool) len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.idle)
}

// Only one thread uses a shared isolate while something runs in it.
func TestSharedIsolatesAreNotWaitedFor(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *Config) { c.Threads = 4 })
	b.mode = workers.Shared
	w := worker("w", `export default { fetch: () => new Promise(done => setTimeout(() => done(new Response("ok")), 30)) }`)
	var all []*outcome
	for range 64 {
		all = append(all, b.start(w, fetch("GET", "http://x/", "")))
	}
	for _, o := range all {
		o.wait(t, o.ended)
		require.Nil(t, o.end.Failure)
	}
	require.Eventually(t, func() bool { s := b.pool.Stats(); return s.Busy == 0 && s.Running == 0 }, patience,
		time.Millisecond)
}

func TestSharedIsolatesMakeRoom(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *Config) { c.Threads, c.MaxIsolates = 2, 2 })
	b.mode = workers.Shared
	for i := range 20 {
		w := worker("w", `export default { fetch: () => new Response("ok") }`)
		w.Owner = fmt.Sprint("owner", i%5)
		require.Equal(t, "ok", string(b.run(w, fetch("GET", "http://x/", "")).reply.Body))
		require.LessOrEqual(t, b.pool.memory.live.Load(), int64(2))
	}
	require.Positive(t, b.pool.Stats().Evictions)
}

// No more isolates are made than allowed: events wait, and those of other owners continue.
func TestEventsWaitForRoom(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, b *bench) {
		w := worker("w", `export default { fetch: () => new Promise(done => setTimeout(() => done(new Response("ok")), 20)) }`)
		var all []*outcome
		for i := range 12 {
			mine := *w
			mine.Owner, mine.Mode = fmt.Sprint("owner", i), b.mode
			all = append(all, b.start(&mine, fetch("GET", "http://x/", "")))
		}
		for _, o := range all {
			o.wait(t, o.ended)
			require.Nil(t, o.end.Failure)
			require.LessOrEqual(t, b.pool.memory.live.Load(), int64(3))
		}
	}, func(c *Config) { c.MaxIsolates = 3 })
}

func TestOneshotLeavesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.mode = workers.Oneshot
	for range 3 {
		b.run(worker("w", `export default { fetch: () => new Response("ok") }`), fetch("GET", "http://x/", ""))
	}
	require.Eventually(t, func() bool { return b.pool.Stats().Cached == 0 && b.pool.memory.live.Load() == 0 }, patience,
		time.Millisecond)
	require.EqualValues(t, 3, b.pool.Stats().ColdStarts)
}

// An event that must have its own isolate gets one, whatever the mode of its worker.
func TestEventWithAnIsolateOfItsOwn(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, b *bench) {
		w := worker("w", `export default { fetch: () => new Response("ok") }`)
		b.run(w, fetch("GET", "http://x/", ""))
		before := b.pool.Stats().ColdStarts
		b.own = true
		for range 3 {
			require.Nil(t, b.run(w, fetch("GET", "http://x/", "")).end.Failure)
		}
		require.EqualValues(t, before+3, b.pool.Stats().ColdStarts)
	})
}

func newPersistent(t *testing.T, code string, change ...func(*Config)) (*bench, *workers.Worker) {
	b := newBench(t, change...)
	w := worker("w", code)
	w.Mode = workers.Persistent
	return b, w
}

func get(b *bench, w *workers.Worker, path string) string {
	b.t.Helper()
	o := b.run(w, fetch("GET", "http://x/"+path, ""))
	require.Nil(b.t, o.end.Failure, "%v", b.lines())
	return string(o.reply.Body)
}

// All events of a persistent worker run in one context, many at once, whichever threads take them.
func TestPersistentEventsMeet(t *testing.T) {
	t.Parallel()
	b, w := newPersistent(t, `let waiting = []; export default { fetch(r) {
		if (r.url.endsWith("open")) { const n = waiting.length; waiting.forEach(done => done(new Response("opened"))); waiting = []; return new Response(String(n)) }
		return new Promise(done => { waiting.push(done) });
	} }`, func(c *Config) { c.Threads = 4 })
	require.Equal(t, "0", get(b, w, "open"))
	var all []*outcome
	for range 20 {
		all = append(all, b.start(w, fetch("GET", "http://x/wait", "")))
	}
	require.Eventually(t, func() bool { return b.pool.Stats().Running == 20 }, patience, time.Millisecond)
	require.Equal(t, "20", get(b, w, "open"))
	for _, o := range all {
		o.wait(t, o.ended)
		require.Equal(t, "opened", string(o.reply.Body))
	}
	require.EqualValues(t, 1, b.pool.Stats().ColdStarts)
}

// The actions of an event of a persistent worker are attributed to it, and not to its neighbours at the same time.
func TestPersistentEventsAreToldApart(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(time.Duration(len(r.URL.Path)) * time.Millisecond) // some take longer
		fmt.Fprint(w, r.URL.Path)
	}))
	defer server.Close()
	b, w := newPersistent(t, `const sleep = ms => new Promise(done => setTimeout(done, ms));
		export default { async task(event, env, ctx) {
			const me = event.payload;
			console.log("start " + me);
			await sleep(me % 7);
			const body = await (await fetch(env.URL + "/" + "x".repeat(me % 5) + me)).text();
			console.log("fetched " + me);
			await env.JOBS.send(String(me));
			await Promise.all([sleep(1), sleep(2)]);
			ctx.waitUntil(sleep(3).then(() => { console.log("late " + me) }));
			queueMicrotask(() => console.log("micro " + me));
			return body;
		} }`, func(c *Config) { c.AllowAddresses = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} })
	w.Vars, w.Queues = map[string]string{"URL": server.URL}, map[string]string{"JOBS": "jobs"}
	all := map[string]*outcome{}
	for i := range 40 {
		e := task(fmt.Sprint(i))
		e.ID = fmt.Sprint("event-", i)
		all[e.ID] = b.start(w, e)
	}
	for id, o := range all {
		o.wait(t, o.ended)
		require.Nil(t, o.end.Failure, "%s: %v", id, b.lines())
		require.Contains(t, string(o.reply.Body), id[len("event-"):]+`"`)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	require.Len(t, b.logs, 4*40)
	for _, l := range b.logs {
		var what, me string
		_, err := fmt.Sscan(l.Text, &what, &me)
		require.NoError(t, err)
		require.Equal(t, "event-"+me, l.EventID, l.Text)
	}
}

// Timers, subrequests and intervals of an event end with it. Those of the module continue.
func TestPersistentEventsEndAlone(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	hung := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		<-r.Context().Done()
		close(hung)
	}))
	defer server.Close()
	b, w := newPersistent(t, `let ticks = 0, stray = 0; setInterval(() => { ticks++ }, 5);
		export default { fetch(r, env) {
			if (r.url.endsWith("stray")) { setInterval(() => { stray++ }, 1); fetch(env.URL); return new Promise(() => {}) }
			return Response.json({ ticks, stray });
		} }`, func(c *Config) { c.AllowAddresses = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} })
	w.Vars = map[string]string{"URL": server.URL}
	w.Limits.Wall = workers.Millis(200 * time.Millisecond)
	var o *outcome
	for asked.Load() == 0 { // on a busy machine an event may end before its request arrives
		o = b.run(w, fetch("GET", "http://x/stray", ""))
		require.Equal(t, events.ReasonTimeout, o.end.Failure.Reason)
		require.Contains(t, o.end.Failure.Message, "wall-clock limit of 200ms")
	}
	o.wait(t, hung)
	require.EqualValues(t, 1, asked.Load())
	read := func() (v struct{ Ticks, Stray int }) {
		require.NoError(t, json.Unmarshal([]byte(get(b, w, "read")), &v))
		return v
	}
	before := read()
	require.Positive(t, before.Stray)
	require.Eventually(t, func() bool { return read().Ticks >= before.Ticks+3 }, patience, time.Millisecond)
	require.Equal(t, before.Stray, read().Stray, "the interval of the event that is over")
}

// A CPU kill ends the context, too: the culprit fails, and its neighbours run again.
func TestPersistentKillInterruptsTheOthers(t *testing.T) {
	t.Parallel()
	b, w := newPersistent(t, `let n = 0; export default { fetch(r) { n++;
		if (r.url.endsWith("loop")) for (;;);
		if (r.url.endsWith("wait")) return new Promise(done => setTimeout(done, 1e6));
		return new Response(String(n)) } }`)
	w.Limits = short
	require.Equal(t, "1", get(b, w, ""))
	neighbour := b.begin(w, fetch("GET", "http://x/wait", ""))
	o := b.run(w, fetch("GET", "http://x/loop", ""))
	require.Equal(t, events.ReasonCPU, o.end.Failure.Reason)
	neighbour.wait(t, neighbour.ended)
	require.True(t, neighbour.end.Interrupted)
	require.Nil(t, neighbour.end.Failure)
	require.Equal(t, "1", get(b, w, ""))
}

// Between events a persistent context is bounded, too.
func TestPersistentGroundIsBounded(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]string{
		"loop":   `setTimeout(() => { for (;;); }, 20)`,
		"memory": `setTimeout(() => { const a = []; for (;;) a.push(new Array(1e5).fill(1.5)) }, 20)`,
		"timers": `setTimeout(() => { for (;;) setTimeout(() => {}, 1e6) }, 20)`,
	} {
		t.Run(name, func(t *testing.T) {
			b, w := newPersistent(t, code+`; let n = 0; export default { fetch: () => new Response(String(++n)) }`)
			w.Limits.HeapMB, w.Limits.CPU = 16, short.CPU
			require.Equal(t, "1", get(b, w, ""))
			require.Eventually(t, func() bool { return b.pool.Stats().Cached == 0 }, patience, time.Millisecond)
			require.Equal(t, "1", get(b, w, ""))
			require.Contains(t, fmt.Sprint(b.lines()), "between events")
		})
	}
}

const hooks = `let n = 0;
	export default {
		fetch(r) { n++; return r.url.endsWith("slow") ? new Promise(done => setTimeout(() => done(new Response("slow")), 100)) : new Response(String(n)) },
		async onIdle(env) { await new Promise(done => setTimeout(done, 5)); console.log("idle " + n + env.X) },
		async onTerminate(env) { console.log("terminate " + n); await new Promise(done => setTimeout(done, 5)); console.log("bye " + env.X) },
	}`

func TestPersistentLifetime(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		life    workers.Lifetime
		lines   []string
		discard string
	}{
		"idle": {workers.Lifetime{Idle: workers.Millis(30 * time.Millisecond)}, []string{"idle 2!", "terminate 2", "bye !"},
			"idle"},
		"ttl":      {workers.Lifetime{TTL: workers.Millis(150 * time.Millisecond)}, []string{"terminate 2", "bye !"}, "ttl"},
		"requests": {workers.Lifetime{Requests: 2}, []string{"terminate 2", "bye !"}, "reuses"},
	} {
		t.Run(name, func(t *testing.T) {
			// On a busy machine the time may pass between two events.
			for longer := workers.Millis(1); ; longer *= 2 {
				b, w := newPersistent(t, hooks)
				w.Lifetime, w.Vars = tc.life, map[string]string{"X": "!"}
				w.Lifetime.Idle *= longer
				w.Lifetime.TTL *= longer
				require.Equal(t, "1", get(b, w, ""))
				second := get(b, w, "")
				require.Eventually(t, func() bool { return b.pool.Stats().Discards[tc.discard] >= 1 }, patience, time.Millisecond)
				lines := b.lines()
				if longer < 100 && tc.life.Requests == 0 && (second == "1" || slices.Contains(lines, "idle 1!")) {
					b.close()
					continue
				}
				require.Equal(t, "2", second)
				require.Equal(t, tc.lines, lines)
				require.Equal(t, "1", get(b, w, ""), "the next event has a new context")
				return
			}
		})
	}
}

// A hook is called although an event has passed its limit, of which JavaScript learns before the hook.
func TestPersistentHookAfterLateEvent(t *testing.T) {
	t.Parallel()
	b, w := newPersistent(t, `export default {
		fetch: () => new Promise(done => setTimeout(done, 1e6)),
		onIdle() { console.log("idle") },
	}`)
	w.Limits.Wall = workers.Millis(20 * time.Millisecond)
	w.Lifetime.Idle = workers.Millis(time.Millisecond)
	require.Equal(t, events.ReasonTimeout, b.run(w, fetch("GET", "http://x/", "")).end.Failure.Reason)
	require.Eventually(t, func() bool { return b.pool.Stats().Discards["idle"] == 1 }, patience, time.Millisecond)
	require.Equal(t, "idle", b.lines()[len(b.lines())-1])
}

// A context that must end takes no new event, and lets its events end.
func TestPersistentContextsEndInPeace(t *testing.T) {
	t.Parallel()
	b, w := newPersistent(t, hooks)
	w.Lifetime.Requests, w.Vars = 1, map[string]string{"X": "!"}
	slow := b.begin(w, fetch("GET", "http://x/slow", ""))
	require.Equal(t, "1", get(b, w, ""))
	slow.wait(t, slow.ended)
	require.Equal(t, "slow", string(slow.reply.Body))
	require.EqualValues(t, 2, b.pool.Stats().ColdStarts)
}

// onTerminate is called whatever ends a context, if that is possible.
func TestPersistentTerminate(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*bench){
		"close":  func(b *bench) { b.close() },
		"evict":  func(b *bench) { other := worker("v", hooks); other.Owner = "other"; get(b, other, "") },
		"retire": func(b *bench) { b.pool.Retire("acme", "w") },
	} {
		t.Run(name, func(t *testing.T) {
			b, w := newPersistent(t, hooks, func(c *Config) { c.MaxIsolates = 1 })
			require.Equal(t, "1", get(b, w, ""))
			end(b)
			require.Eventually(t, func() bool { return len(b.lines()) > 0 }, patience, time.Millisecond)
			require.Equal(t, "terminate 1", b.lines()[0])
		})
	}
	t.Run("that never ends", func(t *testing.T) {
		for _, hook := range []string{`for (;;);`, `return new Promise(() => {})`, `throw new Error("no")`,
			`setInterval(() => {}, 1)`} {
			b, w := newPersistent(t, `export default { fetch: () => new Response("ok"), onTerminate() { `+hook+` } }`)
			w.Lifetime.Requests = 1
			require.Equal(t, "ok", get(b, w, ""))
			require.Eventually(t, func() bool { return b.pool.memory.live.Load() == 0 }, patience, time.Millisecond, hook)
		}
	})
}

// A new version has its own context. The context of the old version is closed when it is idle.
func TestPersistentVersions(t *testing.T) {
	t.Parallel()
	b, w := newPersistent(t, `let n = 0; export default { fetch: () => new Response("old " + ++n) }`)
	require.Equal(t, "old 1", get(b, w, ""))
	next := *w
	next.Version, next.Hash, next.Code = "2-test", "other", `let n = 0; export default { fetch: () => new Response("new " + ++n) }`
	require.Equal(t, "new 1", get(b, &next, ""))
	require.Equal(t, "old 2", get(b, w, ""), "one that was asked for by version")
	require.Equal(t, "new 2", get(b, &next, ""))
}

// Events that come while the module loads wait for it. If it does not load, each event fails by itself.
func TestPersistentLoads(t *testing.T) {
	t.Parallel()
	b, w := newPersistent(t, `await new Promise(done => setTimeout(done, 30)); let n = 0; export default { fetch: () => new Response(String(++n)) }`)
	var all []*outcome
	for range 5 {
		all = append(all, b.start(w, fetch("GET", "http://x/", "")))
	}
	seen := map[string]bool{}
	for _, o := range all {
		o.wait(t, o.ended)
		require.Nil(t, o.end.Failure)
		seen[string(o.reply.Body)] = true
	}
	require.Len(t, seen, 5)
	bad := worker("bad", `await new Promise(done => setTimeout(done, 5)); throw new Error("no")`)
	bad.Mode = workers.Persistent
	all = nil
	for range 3 {
		all = append(all, b.start(bad, fetch("GET", "http://x/", "")))
	}
	for _, o := range all {
		o.wait(t, o.ended)
		require.Contains(t, o.end.Failure.Message, "Error: no")
	}
}

// The names that a worker chooses have no effect: ids of other runs, hooks and frames are out of its reach.
func TestPersistentGuestsCannotForge(t *testing.T) {
	t.Parallel()
	b, w := newPersistent(t, `const kept = []; export default { async fetch(r, env, ctx) {
		if (r.url.endsWith("keep")) { kept.push(ctx); return new Response("kept") }
		try { kept[0].waitUntil(Promise.resolve()); return new Response("waits") } catch (e) { return new Response(e.name) }
	}, onIdle: 5, onTerminate: "x" }`)
	require.Equal(t, "kept", get(b, w, "keep"))
	require.Equal(t, "InvalidStateError", get(b, w, ""))
}
