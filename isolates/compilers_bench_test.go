package isolates

import (
	"cmp"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// computes makes a worker that runs the body of a function for each event.
func computes(body string) string {
	return `const names = Array.from({ length: 200 }, (_, i) => "name" + (i * 7919) % 1000);
		const orders = names.map((name, id) => ({ id, name, price: id * 1.25, tags: ["a", "b", name] }));
		function run() { ` + body + ` }
		export default { task() { return run() !== undefined } }`
}

// BenchmarkCompilers measures what optimization is worth: CPU time of the pinned thread for an event of an owner with
// all compilers, and of one with baseline. Rounds of both take turns, and the medians are compared. BENCH_COMPILERS is
// Config.Compilers of the process.
func BenchmarkCompilers(bm *testing.B) {
	cases := []struct{ name, code string }{
		{"echo", echoJSON},
		{"json", computes(`let n = 0; for (let i = 0; i < 20; i++) n += JSON.parse(JSON.stringify(orders)).length; return n`)},
		{"strings", computes(`let s = ""; for (let k = 0; k < 10; k++) for (const o of orders) s += o.name.toUpperCase().split("M").join("-") + ","; return s.length`)},
		{"sort", computes(`let n = 0; for (let k = 0; k < 10; k++) n += [...orders].sort((a, b) => a.name < b.name ? -1 : 1)[0].id; return n`)},
		{"regexp", computes(`let n = 0; for (let k = 0; k < 20; k++) for (const s of names) if (/^name(\d+)5$/.exec(s)) n++; return n`)},
		{"objects", computes(`const m = new Map(); for (let k = 0; k < 10; k++) for (const o of orders) m.set(o.name, { ...o, k, next: m.get(o.name) }); return m.size`)},
		{"floats", computes(`let x = 1, y = 0; for (let i = 0; i < 100000; i++) { const t = x * 0.99 - y * 0.1; y = x * 0.1 + y * 0.99; x = t } return x + y`)},
		{"ints", computes(`let h = 0; for (let i = 0; i < 200000; i++) h = (h * 31 + (i ^ (h >>> 7))) | 0; return h`)},
	}
	for _, c := range cases {
		bm.Run(c.name, func(bm *testing.B) {
			b := newBench(bm, func(cfg *Config) {
				cfg.ContextMaxReuses, cfg.Compilers = 1<<30, workers.Compilers(os.Getenv("BENCH_COMPILERS"))
			})
			owners := []string{"full", "safe"}
			b.pool.SetPolicy("safe", workers.Policy{Compilers: workers.CompilersBaseline})
			batch, event := 16, func() *lifecycle.Delivery { return task("") }
			if c.name == "echo" {
				batch, event = 256, func() *lifecycle.Delivery { return fetch("POST", "http://x/", echoBody) }
			}
			round := func(owner string) float64 {
				w := workerOf(owner, c.code)
				tid := b.pool.threads[0].Load().watch.pinned()
				before := threadCPU(tid)
				outs := make([]*outcome, batch)
				for i := range outs {
					outs[i] = b.start(w, event())
				}
				for _, o := range outs {
					<-o.ended
					require.Nil(bm, o.end.Failure)
				}
				return float64((threadCPU(tid) - before).Nanoseconds()) / float64(time.Microsecond) / float64(batch)
			}
			for range 40 {
				for _, owner := range owners {
					round(owner)
				}
			}
			spent := map[string][]float64{}
			for bm.Loop() {
				for _, owner := range owners {
					spent[owner] = append(spent[owner], round(owner))
				}
			}
			for _, owner := range owners {
				slices.Sort(spent[owner])
				bm.ReportMetric(spent[owner][len(spent[owner])/2], owner+"-µs/event")
			}
			bm.ReportMetric(0, "ns/op")
		})
	}
	bm.Logf("the process has %s", cmp.Or(os.Getenv("BENCH_COMPILERS"), "full"))
}
