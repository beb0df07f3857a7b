package isolates

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

// BenchmarkStackOfACall measures what it costs that a call of a binding keeps its stack for an error that comes when
// the call is over: CPU time of the pinned thread and of the process per call that succeeds. Workers without stacks set
// Error.stackTraceLimit to 0. Rounds of the kinds take turns, and the least of each is reported: other load on the
// machine adds to the others.
func BenchmarkStackOfACall(bm *testing.B) {
	const calls, events = 500, 1
	code := func(limit, depth int, call string) *workers.Worker {
		w := kvWorker(fmt.Sprintf(`
			Error.stackTraceLimit = %d;
			const data = new Uint8Array(100_000);
			const down = (depth, f) => depth === 0 ? f() : down(depth - 1, f);
			export default { async fetch(r, env) {
				for (let i = 0; i < %d; i++) await down(%d, () => %s);
				return new Response("done");
			} }`, limit, calls, depth, call))
		w.Limits.CPU = ample
		return w
	}
	const get, digest = `env.KV.get("a")`, `crypto.subtle.digest("SHA-256", data)`
	kinds := []struct {
		name string
		w    *workers.Worker
	}{
		{"get", code(20, 0, get)},
		{"get-none", code(0, 0, get)},
		{"get-deep", code(20, 20, get)},
		{"get-deep-none", code(0, 20, get)},
		{"digest", code(20, 0, digest)},
		{"digest-none", code(0, 0, digest)},
	}
	b := newBench(bm, func(c *Config) { c.ContextMaxReuses = 1 << 30 })
	thread, process := make([][]float64, len(kinds)), make([][]float64, len(kinds)) // µs a call
	round := func(k int) (float64, float64) {
		tid := b.pool.threads[0].Load().watch.pinned()
		used, all := threadCPU(tid), processCPU(bm)
		for range events {
			o := b.run(kinds[k].w, fetch("GET", "http://x/", ""))
			require.Nil(bm, o.end.Failure)
		}
		per := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 / calls / events }
		return per(threadCPU(tid) - used), per(processCPU(bm) - all)
	}
	for range 3 { // warm
		for k := range kinds {
			round(k)
		}
	}
	for bm.Loop() {
		for k := range kinds {
			x, y := round(k)
			thread[k], process[k] = append(thread[k], x), append(process[k], y)
		}
	}
	for k, kind := range kinds {
		slices.Sort(thread[k])
		slices.Sort(process[k])
		bm.ReportMetric(thread[k][0], kind.name+"-thread-µs")
		bm.ReportMetric(process[k][0], kind.name+"-µs")
	}
}

// processCPU returns the CPU time that this process has used.
func processCPU(t testing.TB) time.Duration {
	var u unix.Rusage
	require.NoError(t, unix.Getrusage(unix.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
