package isolates

import (
	"fmt"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// BenchmarkIsolatesAtRest measures the resident memory of 400 owners' isolates that have run 1000 events each: then,
// after their garbage is collected, and after they have given up code too. Run it alone with -benchtime 1x.
func BenchmarkIsolatesAtRest(b *testing.B) {
	const owners, eventsEach = 400, 1000
	for b.Loop() {
		h := openBench(b, func(p *Pool) { p.rests.collect, p.rests.flush = time.Hour, 2*time.Hour })
		var list []*workers.Worker
		for i := range owners {
			w := of(fmt.Sprint("o", i), worker("w", `export default { async fetch(r) { const x = await r.json(); return Response.json({ n: x.n + 1 }) } }`))
			w.Limits.CPU = ample
			list = append(list, w)
		}
		empty := memory()
		for _, w := range list {
			for range eventsEach {
				require.Nil(b, h.run(w, fetch("POST", "http://x/", `{"n":1}`)).end.Failure)
			}
			h.mu.Lock()
			clear(h.seen) // not the pool's memory
			h.mu.Unlock()
		}
		report := func(what string) {
			debug.FreeOSMemory()
			v8x.Trim()
			b.ReportMetric(float64(memory()-empty)/owners/(1<<10), "KB-"+what)
		}
		report("warm")
		var used time.Duration
		for _, what := range []string{"collected", "flushed"} {
			done := make(chan struct{})
			h.pool.threads[0].Load().post(func(t *thread) {
				began := threadCPU(unix.Gettid())
				for _, isolates := range t.heaps.isolates {
					for _, iso := range isolates {
						t.placer.resting.collectFor(iso)
					}
				}
				used += threadCPU(unix.Gettid()) - began
				close(done)
			})
			<-done
			report(what)
		}
		b.ReportMetric(float64(used.Microseconds())/owners/2, "µs/collection")
		h.close()
	}
}
