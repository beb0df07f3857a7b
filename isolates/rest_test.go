package isolates

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

// Isolates at rest give back garbage first, then code too, and run as before afterwards. Each does so once until
// something runs in it again. A thread that has work leaves them alone.
func TestIsolatesAtRestGiveBackMemory(t *testing.T) {
	t.Parallel()
	b := openBench(t, func(p *Pool) { p.rests.collect, p.rests.flush = 20*time.Millisecond, 40*time.Millisecond })
	var list []*workers.Worker
	for _, owner := range []string{"a", "b", "c"} {
		w := of(owner, worker("w", `const kept = []; export default { fetch() {
			let s = ""; for (let i = 0; i < 2e4; i++) s = "text" + i + s.length; kept.push(s);
			return new Response(String(kept.length)) } }`))
		w.Limits.CPU = ample
		list = append(list, w)
	}
	th := b.pool.threads[0].Load()
	atRest := func() bool {
		answer := make(chan bool)
		th.post(func(t *thread) {
			next, due := t.placer.resting.next(time.Now())
			answer <- next == nil && due.IsZero()
		})
		return <-answer
	}
	measured := func() int64 {
		answer := make(chan int64)
		th.post(func(t *thread) {
			for _, isolates := range t.heaps.isolates {
				for _, iso := range isolates {
					t.heaps.counters.measure(iso, time.Now(), 0)
				}
			}
			answer <- b.pool.charged()
		})
		return <-answer
	}
	shared := false
	for round := range 2 {
		for _, w := range list {
			require.Equal(t, []string{"1", "2"}[round], string(b.run(w, fetch("GET", "http://x/", "")).reply.Body))
		}
		full := measured() // what was charged before may be older than the last run
		require.Eventually(t, func() bool {
			b.pool.rests.mu.Lock()
			shared = shared || time.Until(b.pool.rests.next) > 0 // the next one waits for its share of a processor
			b.pool.rests.next = time.Time{}
			b.pool.rests.mu.Unlock()
			return atRest()
		}, patience, time.Millisecond)
		require.LessOrEqual(t, b.pool.charged(), full)
	}
	done := th.heaps.counters.collections.Load()
	require.GreaterOrEqual(t, done, uint64(12))
	for range 1000 { // nothing more is due
		runtime.Gosched()
	}
	require.True(t, atRest())
	require.Equal(t, done, th.heaps.counters.collections.Load())
	require.True(t, shared)
}
