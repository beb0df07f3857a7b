package isolates

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

// BenchmarkCold measures the first event of a worker for which the thread has no isolate: a new isolate, a new context,
// the module and the event, and closing the previous isolate. The case empty has almost no module: it measures the
// isolate, the context and the runtime from the snapshot, and the event.
func BenchmarkCold(b *testing.B) {
	for _, size := range []struct {
		name string
		code string
	}{{"empty", `export default { fetch: () => new Response("ok") }`}, {"1KB", bundleOf(1)}, {"10KB", bundleOf(10)}, {"50KB",
		bundleOf(50)}, {"500KB", bundleOf(500)}, {"node", coldNode("")}, {"node/events", coldNode("events")},
		{"node/buffer", coldNode("buffer")}, {"node/util", coldNode("util")}, {"node/stream", coldNode("stream")}} {
		for _, from := range []struct {
			name  string
			bytes int
		}{{"source", 0}, {"cache", 64 << 20}} {
			b.Run(size.name+"/"+from.name, func(b *testing.B) {
				bench := newBench(b, func(c *Config) { c.MaxIsolates, c.CodeCacheBytes = 1, from.bytes })
				var owners [2]*workers.Worker // each evicts the other
				for i := range owners {
					w := worker("w", size.code)
					w.Owner = fmt.Sprint("owner", i)
					// The CPU time of a cold start depends on the state of the machine's caches.
					w.Limits = workers.Limits{CPU: 1000}
					owners[i] = w
					bench.run(w, fetch("GET", "http://x/", ""))
				}
				for i := 0; b.Loop(); i++ {
					bench.run(owners[i%2], fetch("GET", "http://x/", ""))
				}
			})
		}
	}
}

// coldNode makes a bundle with Node's modules that uses this one, as soon as it is loaded.
func coldNode(module string) string {
	code := `import { builtin } from "pinwheel:node"; export default { fetch: () => new Response("ok") };`
	if module != "" {
		code += fmt.Sprintf(" globalThis.used = builtin(%q);", module)
	}
	return code
}

// BenchmarkColdLatency measures the time of the first event of an owner, from Wake to its end: one at a time with
// pauses in which prewarmed isolates are made, and 20 owners at once. The benchmark's own figure, the time of an
// iteration, says little.
func BenchmarkColdLatency(b *testing.B) {
	code := bundleOf(1)
	for _, burst := range []int{1, 20} {
		for _, n := range []int{0, 2, 8} {
			b.Run(fmt.Sprintf("owners=%d/prewarmed=%d", burst, n), func(b *testing.B) {
				bench := newBench(b, func(c *Config) { c.SpareIsolates, c.MaxIsolates = n, 100 })
				var times []time.Duration
				for i := 0; b.Loop(); i++ {
					require.Eventually(b, func() bool { return bench.pool.prewarmed.Stats().Ready == n }, patience, time.Millisecond)
					times = append(times, firstEvents(bench, code, i, burst)...)
				}
				slices.Sort(times)
				ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
				b.ReportMetric(ms(times[len(times)/2]), "p50-ms")
				b.ReportMetric(ms(times[len(times)*99/100]), "p99-ms")
			})
		}
	}
}

// firstEvents runs one event for each of that many new owners, and returns how long each took.
func firstEvents(b *bench, code string, round, owners int) []time.Duration {
	began := time.Now()
	var all []*outcome
	for i := range owners {
		w := worker("w", code)
		w.Owner = fmt.Sprintf("owner%d-%d", round, i)
		all = append(all, b.start(w, fetch("GET", "http://x/", "")))
	}
	var times []time.Duration
	for _, o := range all {
		o.wait(b.t, o.ended)
		times = append(times, time.Since(began))
	}
	return times
}
