package isolates

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// BenchmarkRequestCost measures what a Request with a JSON body and a Response cost in addition to a plain function:
// CPU time of the pinned thread per event, in and out of V8. Rounds of the kinds take turns, and the medians are
// compared. So other load on the machine affects all kinds. task-json is a plain function that gets the same JSON and
// returns the same.
func BenchmarkRequestCost(bm *testing.B) {
	const answer = `{"ok":true,"id":1,"user":{"name":"Ada Lovelace","email":"ada@example.test","roles":["admin","ops"]}}`
	kinds := []struct {
		name string
		code string
		says string
		make func() *lifecycle.Delivery
	}{
		{"plain", `export default { task() { return 1 } }`, `{"success":true,"data":1}`,
			func() *lifecycle.Delivery { return task("") }},
		{"task-json", `export default { task(event) { const x = event.payload; return { ok: true, id: x.id, user: x.user } } }`,
			`{"success":true,"data":` + answer + `}`, func() *lifecycle.Delivery { return task(echoBody) }},
		{"fetch-json", echoJSON, answer, func() *lifecycle.Delivery { return fetch("POST", "http://x/", echoBody) }},
	}
	const batch = 256
	b := newBench(bm, func(c *Config) { c.ContextMaxReuses = 1 << 30 })
	spent := make([][]float64, len(kinds)) // µs an event
	round := func(k int) float64 {
		w := worker("w", kinds[k].code)
		tid := b.pool.threads[0].Load().watch.pinned()
		before := threadCPU(tid)
		outs := make([]*outcome, batch)
		for i := range outs {
			outs[i] = b.start(w, kinds[k].make())
		}
		for _, o := range outs {
			<-o.ended
			require.Nil(bm, o.end.Failure)
		}
		require.Equal(bm, kinds[k].says, string(outs[0].reply.Body))
		return float64((threadCPU(tid) - before).Nanoseconds()) / float64(time.Microsecond) / batch
	}
	for range 8 { // warm
		for k := range kinds {
			round(k)
		}
	}
	for bm.Loop() {
		for k := range kinds {
			spent[k] = append(spent[k], round(k))
		}
	}
	for k, kind := range kinds {
		slices.Sort(spent[k])
		bm.ReportMetric(middle(spent[k]), kind.name+"-µs")
	}
	bm.ReportMetric(middle(spent[2])-middle(spent[0]), "request-µs")
}

// middle returns the median of a sorted list.
func middle(sorted []float64) float64 { return sorted[len(sorted)/2] }
