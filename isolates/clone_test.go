package isolates

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// Clones that do not end or do not fit end their event, and nothing else. Without the tag `hostile` half of them run.
func TestHostileClones(t *testing.T) {
	t.Parallel()
	codes := map[string]string{
		"the copy does not fit": `const list = new Array(3e6).fill(1.5); keep.push(list); for (;;) keep.push(structuredClone(list))`,
		"many objects":          `const list = Array.from({ length: 2e5 }, (_, i) => ({ i })); for (;;) keep.push(structuredClone(list))`,
		"many maps":             `const map = new Map(Array.from({ length: 1e5 }, (_, i) => [i, {}])); for (;;) keep.push(structuredClone(map))`,
		"a getter that loops":   `structuredClone({ get x() { for (;;); } })`,
		"a getter that grows":   `structuredClone({ get x() { for (;;) keep.push(new Array(1000).fill(1.5)) } })`,
		"a getter that makes":   `const make = () => ({ get next() { return make() } }); try { structuredClone(make()) } catch {} for (;;);`,
		"long strings":          `const list = new Array(1e4).fill("x".repeat(1e4)); for (;;) try { keep.push(structuredClone(list)) } catch {}`,
		"buffers":               `const b = new Uint8Array(1 << 20); for (;;) try { keep.push(structuredClone(b)) } catch {}`,
		"transfers":             `let b = new ArrayBuffer(1 << 20); for (;;) b = structuredClone(b, { transfer: [b] })`,
		"blobs":                 `const b = new Blob(["x".repeat(1e6)]); for (;;) try { keep.push(structuredClone({ b })) } catch {}`,
	}
	for _, name := range sampled(t, slices.Sorted(maps.Keys(codes)), len(codes)/2) {
		t.Run(name, func(t *testing.T) {
			code := codes[name]
			b := newBench(t)
			w := worker("w", `const keep = []; export default { task() { `+code+` } }`)
			w.Limits = workers.Limits{CPU: workers.Millis(250 * time.Millisecond), HeapMB: 64}
			if strings.Contains(code, "for (;;);") { // it takes no memory
				w.Limits.CPU = workers.Millis(50 * time.Millisecond)
			}
			f := b.run(w, task("{}")).end.Failure
			require.NotNil(t, f)
			require.Contains(t, []events.Reason{events.ReasonCPU, events.ReasonMemory}, f.Reason, "%v", f)
			require.Equal(t, "hello", b.task(hello, "{}")["data"])
			require.Zero(t, b.pool.Stats().Parked)
		})
	}
}

// BenchmarkStructuredClone measures the time of one call, in JavaScript. The benchmark's own figure includes the event
// around it.
func BenchmarkStructuredClone(b *testing.B) {
	for _, bm := range []struct{ name, value string }{
		{"small", `({ id: 7, name: "Ada", tags: ["a", "b"], nested: { ok: true, n: null } })`},
		{"document", `({ users: Array.from({ length: 200 }, (_, i) => ({ id: i, name: "user " + i, roles: ["a", "b"], at: { lat: i / 3, lng: -i } })) })`},
		{"classes", `Array.from({ length: 200 }, () => new (class { x = 1; y = "two" })())`},
		{"mixed", `({ m: new Map(Array.from({ length: 100 }, (_, i) => ["k" + i, { i }])), s: new Set([1, 2]), d: new Date(), e: new Error("x"), b: new Uint8Array(1000) })`},
		{"1MB", `new Uint8Array(1 << 20)`},
	} {
		b.Run(bm.name, func(b *testing.B) {
			bench := newBench(b)
			w := worker("w", `const value = `+bm.value+`; export default { task({ payload }) { for (let i = 0; i < payload; i++) structuredClone(value) } }`)
			w.Limits = workers.Limits{CPU: workers.Millis(time.Minute), Wall: workers.Millis(time.Minute)}
			bench.run(w, task("1"))
			for b.Loop() {
				require.Nil(b, bench.run(w, task("20")).end.Failure)
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/20, "µs/clone")
		})
	}
}
