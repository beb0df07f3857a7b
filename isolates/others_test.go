package isolates

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// turnsOf runs an event of each of n workers of one owner, one after the other, and returns how many found a warm
// context.
func turnsOf(b *bench, n int, code string) (warm int) {
	b.t.Helper()
	for i := range n {
		w := worker(fmt.Sprint("w", i), code)
		w.Limits.CPU = workers.Millis(10 * time.Second)
		o := b.run(w, fetch("GET", "http://x/", ""))
		require.Nil(b.t, o.end.Failure)
		if o.end.Warm {
			warm++
		}
	}
	return warm
}

// Workers of one owner that take turns stay warm, however many they are, and whatever their modules hold.
func TestWorkersInTurnAreWarm(t *testing.T) {
	t.Parallel()
	for _, mode := range []workers.Mode{workers.Pinned, workers.Shared} {
		for name, code := range map[string]string{
			"small": `export default { fetch: () => new Response("ok") }`,
			"large": `const kept = []; for (let i = 0; i < 10; i++) kept.push(new Array(131072).fill(i + 0.5)); export default { fetch: () => new Response("ok") }`,
		} {
			for _, n := range map[string][]int{"small": {9, 50}, "large": {15}}[name] {
				t.Run(fmt.Sprint(mode, " ", name, " ", n), func(t *testing.T) {
					b := newBench(t)
					b.mode = mode
					require.Zero(t, turnsOf(b, n, code))
					for range 2 {
						require.Equal(t, n, turnsOf(b, n, code))
					}
					s := b.pool.Stats()
					t.Logf("%d contexts in %d isolates, %d MB", s.Contexts, s.Cached, s.HeapBytes>>20)
					require.EqualValues(t, n, s.ColdStarts)
					require.Zero(t, s.Evictions)
				})
			}
		}
	}
}

// holds is a module that keeps mb MB in its state. An event for /N holds N more while it waits for the gate, and an
// event for /keep/N keeps N more forever.
func holds(mb int) string {
	return fmt.Sprintf(`const fill = (mb) => Array.from({ length: mb * 8 }, (_, i) => new Array(16384).fill(i + 0.5));
		const kept = fill(%d);
		export default { async fetch(request) {
			const [, way, mb, gate] = new URL(request.url).pathname.split("/");
			if (way === "keep") kept.push(fill(+mb));
			if (way === "wait") await fetch("http://127.0.0.1:" + gate + "/before");
			const mine = way === "keep" ? [] : fill(+mb);
			if (way === "hold") await fetch("http://127.0.0.1:" + gate + "/hold");
			return new Response("ok " + mine.length);
		} }`, mb)
}

func patient(name string, mb int) *workers.Worker {
	w := worker(name, holds(mb))
	w.Limits.CPU = workers.Millis(10 * time.Second)
	return w
}

func asked(format string, args ...any) *lifecycle.Delivery {
	return fetch("GET", "http://x"+fmt.Sprintf(format, args...), "")
}

// A small worker is never ended because of its neighbours' memory. Here, at its first call, they hold 115 of 128 MB.
func TestFirstCallBesideLargeNeighbours(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for i := range 7 {
		require.Nil(t, b.run(patient(fmt.Sprint("large", i), 16), asked("/own/0")).end.Failure)
	}
	for i := range 8 {
		w := patient("small", 0)
		w.Version, w.Number = fmt.Sprint(i, "-test"), i
		o := b.run(w, asked("/own/20"))
		require.Nil(t, o.end.Failure)
		require.False(t, o.end.Warm)
	}
	require.Empty(t, b.pool.Stats().Kills)
}

// The same, when they grew after it became warm.
func TestWarmCallBesideNeighboursThatGrew(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	small, large := patient("small", 0), patient("large", 0)
	for _, w := range []*workers.Worker{small, large} {
		require.Nil(t, b.run(w, asked("/own/0")).end.Failure)
	}
	b.awaitIdle(1, map[string]int{"acme": 2})
	require.Nil(t, b.run(large, asked("/keep/110")).end.Failure)
	for range 5 {
		require.Nil(t, b.run(small, asked("/own/40")).end.Failure)
	}
	o := b.run(large, asked("/own/0"))
	require.Nil(t, o.end.Failure)
	require.True(t, o.end.Warm, "what is large stays where it is")
	require.Empty(t, b.pool.Stats().Kills)
	b.awaitIdle(2, map[string]int{"acme": 2})
}

// The same, when they grow while it waits. Then it may have to run again, and so may they.
func TestRunBesideNeighboursThatGrow(t *testing.T) {
	t.Parallel()
	b := newBench(t, loopback)
	port, reached, open := gate(t)
	small, large := patient("small", 0), patient("large", 0)
	for _, w := range []*workers.Worker{small, large} {
		require.Nil(t, b.run(w, asked("/own/0")).end.Failure)
	}
	waits := b.start(small, asked("/wait/60/%d", port))
	require.Equal(t, "/before", <-reached)
	holding := b.start(large, asked("/hold/110/%d", port))
	require.Equal(t, "/hold", <-reached)
	close(open)
	waits.wait(t, waits.ended)
	require.Nil(t, waits.end.Failure)
	if waits.end.Interrupted { // dispatch does this after two of these
		b.own = true
		o := b.run(small, asked("/own/60"))
		require.Nil(t, o.end.Failure)
	}
	require.Empty(t, b.pool.Stats().Kills)
	b.close()
	holding.wait(t, holding.ended)
	require.Nil(t, holding.end.Failure)
}

// A run that takes too much memory itself is ended as always, whatever is beside it.
func TestLargeRunBesideSmallNeighbours(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	turnsOf(b, 20, `export default { fetch: () => new Response("ok") }`)
	o := b.run(patient("large", 0), asked("/own/160"))
	require.NotNil(t, o.end.Failure)
	require.Equal(t, events.ReasonMemory, o.end.Failure.Reason)
	require.EqualValues(t, 1, b.pool.Stats().Kills["memory"])
}

// The garbage of neighbours is collected before a run. The owner pays for that, not the run.
func TestGarbageOfNeighboursIsCollectedBefore(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	tidy, messy := patient("tidy", 0), patient("messy", 0)
	for i := 0; b.pool.Stats().Collections == 0; i++ {
		require.Less(t, i, 100)
		for _, w := range []*workers.Worker{tidy, messy} {
			o := b.run(w, asked("/own/%d", map[string]int{"messy": 24}[w.Name]))
			require.Nil(t, o.end.Failure)
			require.Equal(t, i > 0, o.end.Warm, "who has garbage only goes nowhere")
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	require.Positive(t, b.charged["acme"])
}

// An owner of many workers makes room for them among its own isolates, not among those of other owners.
func TestManyWorkersLeaveOthersWarm(t *testing.T) {
	t.Parallel()
	small := `export default { fetch: () => new Response("ok") }`
	for mode, list := range map[workers.Mode]struct {
		n    int
		code string
	}{
		workers.Pinned: {12, holds(17)}, // each has its own isolate
		workers.Shared: {20, small},     // two have one
	} {
		t.Run(string(mode), func(t *testing.T) {
			b := newBench(t, func(c *Config) {
				c.MaxIsolates, c.OwnerMaxIsolates, c.ContextsPerIsolate, c.SpareIsolates = 12, 12, 2, 0
			})
			b.mode = mode
			quiet := func() (warm int) {
				for i := range 3 {
					o := b.run(of(fmt.Sprint("quiet", i), worker("w", small)), fetch("GET", "http://x/", ""))
					require.Nil(t, o.end.Failure)
					if o.end.Warm {
						warm++
					}
				}
				return warm
			}
			quiet()
			for range 2 {
				turnsOf(b, list.n, list.code)
			}
			require.Equal(t, 3, quiet())
			n, _ := b.pool.use("acme")
			require.EqualValues(t, 9, n, "all that was left")
		})
	}
}

// Contexts of versions that have had no event for a while make room for the next one.
func TestOutdatedContextsGo(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	deploy := func(n int) {
		w := worker("w", `export default { fetch: () => new Response("ok") }`)
		w.Version, w.Number = fmt.Sprint(n, "-test"), n
		require.Nil(t, b.run(w, fetch("GET", "http://x/", "")).end.Failure)
	}
	for n := range 10 {
		deploy(n)
	}
	require.Equal(t, 10, b.pool.Stats().Contexts)
	aged := make(chan struct{})
	b.pool.threads[0].Load().post(func(t *thread) {
		for _, iso := range t.heaps.isolates["acme"] {
			for _, jc := range iso.contexts {
				jc.used = jc.used.Add(-t.pool.cfg.OldVersionIdle)
			}
		}
		close(aged)
	})
	b.pool.Wake(0)
	<-aged
	deploy(10)
	require.Equal(t, 1, b.pool.Stats().Contexts)
}

// gate is a server that reports each request and answers when it is opened. It never answers a path that says hold.
func gate(t *testing.T) (port int, reached chan string, open chan struct{}) {
	reached, open = make(chan string, 10), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		reached <- r.URL.Path
		if r.URL.Path == "/before" {
			<-open
		} else {
			<-r.Context().Done()
		}
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().(*net.TCPAddr).Port, reached, open
}

// An owner at its share does not wait for its large run that waits.
func TestOwnerAtItsShareGoesOn(t *testing.T) {
	t.Parallel()
	b := newBench(t, loopback, func(c *Config) { c.OwnerMaxIsolates = 1 })
	port, reached, _ := gate(t)
	holding := b.start(patient("large", 0), asked("/hold/60/%d", port))
	require.Equal(t, "/hold", <-reached)
	for range 2 {
		o := b.run(patient("small", 0), asked("/own/1"))
		require.Nil(t, o.end.Failure)
		require.False(t, o.end.Interrupted)
	}
	require.False(t, holding.isOver())
	b.close()
}

// Nothing of a removed worker stays, whatever else its owner has.
func TestRemovedWorkersLeaveNothing(t *testing.T) {
	t.Parallel()
	for _, mode := range []workers.Mode{workers.Pinned, workers.Shared} {
		b := newBench(t)
		b.mode = mode
		turnsOf(b, 3, `export default { fetch: () => new Response("ok") }`)
		for i, left := range []int{2, 1, 0} {
			b.pool.Retire("acme", fmt.Sprint("w", i))
			require.Eventually(t, func() bool { return b.pool.Stats().Contexts == left }, patience, time.Millisecond)
		}
		require.Eventually(t, func() bool { return b.pool.Stats().Cached == 0 }, patience, time.Millisecond)
		// A context is counted as discarded after it has gone.
		require.Eventually(t, func() bool { return b.pool.Stats().Discards["removed"] == 3 }, patience, time.Millisecond)
	}
}
