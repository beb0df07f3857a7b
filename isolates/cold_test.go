package isolates

import (
	"fmt"
	"testing"

	"github.com/pinwheel-run/pinwheel/events"
)

// BenchmarkCold is the first event of a worker that the thread has no isolate for: a new isolate, a new context, the
// module and the event; and closing the isolate before it. empty has next to no module: what it takes is the
// isolate, the context and the runtime from the snapshot, and the event.
func BenchmarkCold(b *testing.B) {
	for _, size := range []struct {
		name string
		code string
	}{{"empty", `export default { fetch: () => new Response("ok") }`}, {"1KB", bundleOf(1)}, {"50KB", bundleOf(50)}, {"500KB", bundleOf(500)}} {
		for _, from := range []struct {
			name  string
			bytes int
		}{{"source", 0}, {"cache", 64 << 20}} {
			b.Run(size.name+"/"+from.name, func(b *testing.B) {
				bench := newBench(b, func(c *Config) { c.MaxIsolates, c.CodeCacheBytes = 1, from.bytes })
				var owners [2]*events.Worker // one drives the other out
				for i := range owners {
					w := worker("w", size.code)
					w.Owner = fmt.Sprint("owner", i)
					// A cold start's CPU time depends on how the caches of the machine are.
					w.Limits = events.Limits{CPU: 1000}
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
