package isolates

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// hoard keeps 10 MB in its module's state, and so in its idle context.
const hoard = `const kept = []; export default { fetch() { kept.length = 0; for (let i = 0; i < 10; i++) kept.push(new Array(131072).fill(i + 0.5)); return new Response("ok") } }`

func hungryOwner(owner, code string) *workers.Worker {
	w := worker("w", code)
	w.Owner = owner
	w.Limits.CPU = workers.Millis(10 * time.Second)
	return w
}

// Idle isolates are closed before the heaps of the process exceed its budget.
func TestHeapBudget(t *testing.T) {
	b := newBench(t, func(c *Config) { c.HeapMB, c.Threads = 64, 2 })
	for i := range 20 {
		o := b.run(hungryOwner(fmt.Sprint("owner", i), hoard), fetch("GET", "http://x/", ""))
		require.Nil(t, o.end.Failure)
		require.Eventually(t, func() bool { return b.pool.Stats().HeapBytes <= 64<<20 }, patience, time.Millisecond)
	}
	s := b.pool.Stats()
	require.EqualValues(t, 64<<20, s.HeapMax)
	require.Greater(t, s.HeapBytes, int64(20<<20), "what fits stays")
	require.Positive(t, s.Evictions)
}

// When all isolates are in use, the largest one of the owner that has most ends, and no other.
func TestHeapBudgetEndsTheLargest(t *testing.T) {
	b := newBench(t, func(c *Config) { c.HeapMB, c.OwnerHeapMB = 64, 64 })
	waits := hungryOwner("modest", `export default { fetch: () => new Promise(done => setTimeout(() => done(new Response("ok")), 500)) }`)
	modest := b.start(waits, fetch("GET", "http://x/", ""))
	greedy := b.run(hungryOwner("greedy", `export default { async fetch() { const kept = []; for (;;) {
		kept.push(new Array(262144).fill(0.5)); await new Promise(done => setTimeout(done, 1));
	} } }`), fetch("GET", "http://x/", ""))
	require.NotNil(t, greedy.end.Failure)
	require.Equal(t, events.ReasonMemory, greedy.end.Failure.Reason)
	require.Contains(t, greedy.end.Failure.Message, "the heaps of the process have passed 64 MB")
	modest.wait(t, modest.ended)
	require.Nil(t, modest.end.Failure)
	require.EqualValues(t, 1, b.pool.Stats().Kills["memory"])
}

// An owner at its share waits for its own events. Other owners do not wait.
func TestOwnersShare(t *testing.T) {
	inModes(t, func(t *testing.T, b *bench) {
		slow := `export default { fetch: () => new Promise(done => setTimeout(() => done(new Response("ok")), 50)) }`
		var all []*outcome
		for i := range 6 {
			w := hungryOwner("greedy", slow)
			w.Name = fmt.Sprint("w", i)
			w.Hash = w.Name
			all = append(all, b.start(w, fetch("GET", "http://x/", "")))
		}
		quick := b.run(hungryOwner("quick", `export default { fetch: () => new Response("ok") }`), fetch("GET", "http://x/", ""))
		require.Nil(t, quick.end.Failure)
		for _, o := range all {
			o.wait(t, o.ended)
			require.Nil(t, o.end.Failure)
			n, _ := b.pool.use("greedy")
			require.LessOrEqual(t, n, int64(2))
		}
	}, func(c *Config) { c.OwnerMaxIsolates, c.ContextsPerIsolate = 2, 1 })
}

func TestConfigBudgets(t *testing.T) {
	require.Equal(t, 4096-512-2*144, DefaultConfig(2).OrDefault().HeapMB)
	c := DefaultConfig(4)
	c.HeapMB = 4000
	require.EqualError(t, c.Validate(), "isolates: HeapMB is 4000: it is 64 to 3008")
}

// The memory of isolates goes back to the operating system when they are closed.
func TestMemoryGoesBack(t *testing.T) {
	b := newBench(t)
	b.run(hungryOwner("first", hoard), fetch("GET", "http://x/", ""))
	before := rss(t)
	for i := range 30 {
		require.Nil(t, b.run(hungryOwner(fmt.Sprint("owner", i), hoard), fetch("GET", "http://x/", "")).end.Failure)
	}
	most := rss(t)
	require.Greater(t, most-before, 150<<20, "30 isolates of 10 MB each")
	b.close()
	// The race detector and the allocators of V8's own threads keep some memory.
	require.Eventually(t, func() bool { return rss(t)-before < (most-before)/5 }, patience, 50*time.Millisecond)
	t.Logf("RSS before %d MB, with 30 isolates %d MB, after %d MB", before>>20, most>>20, rss(t)>>20)
}

func rss(t testing.TB) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	require.NoError(t, err)
	var size, resident int
	_, err = fmt.Fscan(strings.NewReader(string(text)), &size, &resident)
	require.NoError(t, err)
	return resident * os.Getpagesize()
}

// A policy lowers limits, also of workers that are warm, and bounds the resources of an owner.
func TestPolicy(t *testing.T) {
	b := newBench(t)
	slow := hungryOwner("acme", `export default { fetch(r) { if (r.url.endsWith("loop")) for (;;); return new Promise(done => setTimeout(() => done(new Response("ok")), 50)) } }`)
	require.Nil(t, b.run(slow, fetch("GET", "http://x/", "")).end.Failure)
	b.pool.SetPolicy("acme",
		workers.Policy{MaxIsolates: 1, Ceilings: workers.Limits{CPU: workers.Millis(20 * time.Millisecond),
			Wall: workers.Millis(40 * time.Second)}})
	o := b.run(slow, fetch("GET", "http://x/loop", ""))
	require.Equal(t, events.ReasonCPU, o.end.Failure.Reason)
	require.Contains(t, o.end.Failure.Message, "CPU time limit of 20ms")
	b.pool.SetPolicy("acme", workers.Policy{Ceilings: workers.Limits{Wall: workers.Millis(30 * time.Millisecond)}})
	o = b.run(slow, fetch("GET", "http://x/", ""))
	require.Contains(t, o.end.Failure.Message, "wall-clock limit of 30ms")
	b.pool.SetPolicy("acme", workers.Policy{MaxIsolates: 1})
	var all []*outcome
	for range 4 {
		w := *slow
		w.Mode = workers.Oneshot
		all = append(all, b.start(&w, fetch("GET", "http://x/", "")))
	}
	for _, o := range all {
		o.wait(t, o.ended)
		require.Nil(t, o.end.Failure)
		n, _ := b.pool.use("acme")
		require.LessOrEqual(t, n, int64(1))
	}
	b.pool.SetPolicy("acme", workers.Policy{})
	require.False(t, b.pool.policies.Known("acme"))
}
