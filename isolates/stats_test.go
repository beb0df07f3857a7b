package isolates

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/isolates/stats"
)

func TestStatsCountWhatThreadsDo(t *testing.T) {
	b := newBench(t, func(c *Config) {
		c.MaxIsolates, c.ContextMaxReuses, c.ContextKeepMB, c.ContextsPerIsolate = 2, 3, 0,
			2
	})
	require.Equal(t, stats.Counts{Total: 2, Capacity: 2, HeapMax: int64(mostHeapMB(1)) << 20}, b.pool.Stats().Counts)
	as := func(owner, name, code string) *workers.Worker {
		w := worker(name, code)
		w.Owner = owner
		return w
	}
	ok := `export default { fetch: () => new Response("ok") }`
	fail := `export default { fetch() { throw 1 } }`
	grow := `export default { fetch() { const a = []; for (;;) a.push(new Array(1e5).fill(1.5)) } }`
	get := func(w *workers.Worker) { b.run(w, fetch("GET", "http://x/", "")) }
	for range 4 { // cold, warm, warm and thrown away, cold
		get(as("a", "ok", ok))
	}
	get(as("a", "fail", fail)) // cold, thrown away
	get(as("b", "ok", ok))     // cold
	get(as("a", "ok", ok))     // warm
	get(as("a", "other", ok))  // cold
	get(as("a", "third", ok))  // cold: an idle one of the two has to go
	get(as("c", "ok", ok))     // cold: the isolate of b has to go
	grows := as("c", "grow", grow)
	grows.Limits.CPU = ample
	get(grows) // cold, and its isolate goes
	b.pool.Wake(0)
	var s Stats
	require.Eventually(t, func() bool { s = b.pool.Stats(); return s.Running == 0 && s.Cached == 1 }, patience,
		time.Millisecond, "%+v", &s)
	require.Positive(t, s.HeapBytes)
	want := stats.Counts{
		Total: 2, Cached: 1, Capacity: 1, Contexts: 2, WarmHits: 3, ColdStarts: 8, Resets: 3, Evictions: 1,
		HeapBytes: s.HeapBytes, HeapMax: s.HeapMax,
	}
	want.Derive()
	require.Equal(t, want, s.Counts)
	require.Equal(t, map[string]uint64{"reuses": 1, "exception": 1, "room": 1, "memory": 1}, s.Discards)
	require.Equal(t, map[string]uint64{"memory": 1}, s.Kills)
	thread := s.Counts
	thread.HeapMax = 0
	require.Equal(t, []stats.ThreadStats{{Thread: 0, Counts: thread}}, s.Threads)
	require.Equal(t, []OwnerStats{{Owner: "a", Isolates: 1, HeapBytes: s.HeapBytes,
		UseStats: stats.UseStats{Contexts: 2, WarmHits: 3, ColdStarts: 5}}}, s.Owners)
	require.Equal(t, []WorkerStats{
		{Worker: "a/other", UseStats: stats.UseStats{Contexts: 1, ColdStarts: 1}},
		{Worker: "a/third", UseStats: stats.UseStats{Contexts: 1, ColdStarts: 1}},
	}, s.Workers)

	text, err := json.Marshal(s)
	require.NoError(t, err)
	require.Contains(t, string(text), `{"total":2,"cached":1,"busy":0,"capacity":1,"contexts":2,"running":0,"hit_rate":0.2727272727272727,"warm_hits":3,`)
	n, err := testutil.GatherAndCount(gatherer(t, b.pool), "pinwheel_context_discards_total", "pinwheel_isolates",
		"pinwheel_isolate_kills_total")
	require.NoError(t, err)
	require.Equal(t, 4+3+1, n)
}

func gatherer(t *testing.T, p *Pool) prometheus.Gatherer {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	require.NoError(t, reg.Register(Collector{p.Stats}))
	return reg
}

func TestStatsShowWhatRuns(t *testing.T) {
	held := make(chan struct{})
	release := sync.OnceFunc(func() { close(held) })
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-held }))
	defer s.Close()
	defer release()
	b := newBench(t, loopback)
	w := worker("w", fmt.Sprintf(`export default { fetch: () => fetch(%q) }`, s.URL))
	first, second := b.start(w, fetch("GET", "http://x/", "")), b.start(w, fetch("GET", "http://x/", ""))
	require.Eventually(t, func() bool {
		s := b.pool.Stats()
		return s.Running == 2 && s.Busy == 1 && s.Cached == 0 && s.Owners[0].Running == 2
	}, patience, time.Millisecond)
	release()
	first.wait(t, first.ended)
	second.wait(t, second.ended)
	require.Eventually(t, func() bool { s := b.pool.Stats(); return s.Running == 0 && s.Busy == 0 && s.Cached == 1 },
		patience, time.Millisecond)
}

func TestStatsOfProcessesAddUp(t *testing.T) {
	process := func(first int) Stats {
		s := Stats{Discards: map[string]uint64{"cpu": 1}, Threads: []stats.ThreadStats{{}}, Parked: 1}
		s.Counts.Add(stats.Counts{Total: 10, Cached: 2, Busy: 1, WarmHits: 9, ColdStarts: 1, HeapBytes: 100})
		for i := range stats.MaxUses {
			s.Owners = append(s.Owners, OwnerStats{Owner: fmt.Sprint("o", first+i), Isolates: 1,
				UseStats: stats.UseStats{WarmHits: 2}})
			s.Workers = append(s.Workers, WorkerStats{Worker: fmt.Sprint("o/w", first+i), UseStats: stats.UseStats{Contexts: 1}})
		}
		return s
	}
	s := Stats{}
	s.Add(process(0))
	s.Add(process(stats.MaxUses - 1)) // one owner is in both
	require.Equal(t, stats.Counts{Total: 20, Cached: 4, Busy: 2, Capacity: 14, WarmHits: 18, ColdStarts: 2, HitRate: 0.9,
		HeapBytes: 200}, s.Counts)
	require.Equal(t, 2, s.Parked)
	require.Empty(t, s.Threads)
	require.Equal(t, map[string]uint64{"cpu": 2}, s.Discards)
	require.Len(t, s.Owners, stats.MaxUses)
	require.Equal(t, OwnerStats{Owner: "o19", Isolates: 2, UseStats: stats.UseStats{WarmHits: 4}}, s.Owners[0])
	require.Equal(t, WorkerStats{Worker: "o/w19", UseStats: stats.UseStats{Contexts: 2}}, s.Workers[0])
}

// A lost thread takes its isolates with it; what it had counted stays.
func TestCountersOutliveAThread(t *testing.T) {
	old, next := &counters{}, &counters{}
	old.warm.Store(5)
	old.isolates.Store(2)
	old.discards.inc("cpu")
	old.kills.inc("something new")
	next.inherit(old)
	require.EqualValues(t, 5, next.warm.Load())
	require.Zero(t, next.isolates.Load())
	m := map[string]uint64{}
	next.discards.add(m)
	next.kills.add(m)
	require.Equal(t, map[string]uint64{"cpu": 1, "other": 1}, m)
}

// BenchmarkTally measures the cost of counting for a warm event.
func BenchmarkTally(b *testing.B) {
	c := &counters{}
	iso := &isolate{tenant: "a", sampled: time.Now().Add(time.Hour)}
	c.isolateOpened(iso)
	jc := &jsContext{isolate: iso, worker: &workers.Worker{}}
	c.contextMade(jc)
	now := time.Now()
	for b.Loop() {
		c.warmHit(jc)
		c.entered(jc, 1)
		c.left(jc, 0)
		c.sampleHeap(iso, now, heapEvery)
	}
}

func BenchmarkStats(b *testing.B) {
	p := newBench(b).pool
	t := p.threads[0].Load()
	for i := range 400 {
		t.heaps.counters.isolateOpened(&isolate{tenant: fmt.Sprint(i)})
	}
	for b.Loop() {
		p.Stats()
	}
}
