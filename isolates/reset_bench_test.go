package isolates

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

// BenchmarkReset compares an event that leaves nothing behind in its context with one that leaves things that must be
// undone before the next event: timers, a subrequest's signal, groups and counts of the console, keys of shared.
func BenchmarkReset(b *testing.B) {
	for _, kind := range []struct{ name, code string }{
		{"clean", `export default { fetch() { return new Response("ok") } }`},
		{"littered", `export default { fetch() {
			for (let i = 0; i < 8; i++) setTimeout(() => {}, 60_000);
			console.group(); console.count("events"); console.time("long");
			shared.list = [1, 2, 3]; shared.map = new Map([[1, 2]]);
			AbortSignal.timeout(60_000);
			return new Response("ok");
		} }`},
	} {
		b.Run(kind.name, func(b *testing.B) {
			p := newBench(b, func(c *Config) { c.ContextMaxReuses = 1 << 30 })
			w := worker("w", kind.code)
			const batch = 64
			rush(b, p, []*workers.Worker{w}, 4*batch, batch, 1, "")
			tid := p.pool.threads[0].Load().watch.pinned()
			before := threadCPU(tid)
			b.ResetTimer()
			for range b.N {
				rush(b, p, []*workers.Worker{w}, batch, batch, 1, "")
			}
			b.ReportMetric(float64((threadCPU(tid)-before).Nanoseconds())/1e3/float64(b.N*batch), "cpu-µs/event")
			require.EqualValues(b, 1, p.pool.Stats().ColdStarts, "nothing was thrown away")
		})
	}
}
