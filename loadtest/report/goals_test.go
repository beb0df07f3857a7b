package report

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Goals of kernels are compared with node's time, and their mean only where all were measured.
func TestKernelGoals(t *testing.T) {
	t.Parallel()
	r := &Report{}
	for i, k := range Kernels() {
		for system, times := range map[string]float64{Ours: 1 + float64(i%2), "node": 1} {
			r.Cases = append(r.Cases,
				Result{Case: Case{System: system, Beside: true, Web: WebKernels, Kernel: k, Load: ClosedLoop, Owners: 1},
					Rounds: []Round{{Metrics: map[string]float64{"p50 ms/run": times}}}})
		}
	}
	goals := r.webGoals()
	require.Contains(t, goals, []string{"nbody: at most 1.6 × node's time", "1.00", "met"})
	require.Contains(t, goals, []string{"matrices: at most 1.6 × node's time", "2.00", "not met"})
	require.Contains(t, goals, []string{"kernels: at most 1.15 × node's time in the geometric mean", "1.37", "not met"},
		"5 of 11 take twice the time")
	r.Cases = r.Cases[:4]
	require.Len(t, r.webGoals(), 3)
}

// The goals compare systems in the same case only.
func TestHTTPGoals(t *testing.T) {
	t.Parallel()
	r := &Report{}
	add := func(system, load string, owners int, metrics map[string]float64) {
		r.Cases = append(r.Cases, Result{Case: Case{System: system, Beside: true, Web: WebJSON, Load: load, Owners: owners},
			Rounds: []Round{{Metrics: metrics}}})
	}
	add(Ours, ClosedLoop, 1, map[string]float64{"requests/s": 900, "fleet µs/request": 60})
	add("workerd", ClosedLoop, 1, map[string]float64{"requests/s": 1000, "fleet µs/request": 50})
	add("workerd", ClosedLoop, 100, map[string]float64{"requests/s": 1, "fleet µs/request": 1})
	add("bun", ClosedLoop, 1, map[string]float64{"requests/s": 5000, "fleet µs/request": 10})
	add(Ours, ClosedLoop, 1000, map[string]float64{"requests/s": 1, "fleet µs/request": 1}) // no goal is for so many
	add("workerd", ClosedLoop, 1000, map[string]float64{"requests/s": 2, "fleet µs/request": 1})
	add(Ours, OpenLoop, 100, map[string]float64{"p99 ms": 3})
	add("node", OpenLoop, 100, map[string]float64{"p99 ms": 2.5})
	add("bun", OpenLoop, 100, map[string]float64{"p99 ms": 2})
	add(WebFloor, OpenLoop, 100, map[string]float64{"p99 ms": 1}) // no peer
	require.Equal(t, table{
		{"goal", "measured", "met"},
		{"1 owner: at least workerd's requests/s", "0.90", "not met"},
		{"1 owner: at most 1.2 × workerd's CPU time per request", "1.20", "met"},
		{"100 owners: p99 at most 1.2 × the best peer's (bun)", "1.50", "not met"},
	}, r.webGoals())
	sections := r.sections()
	require.Len(t, sections, 3)
	require.Equal(t, []string{"bun json closed owners=1", "0.18", "5000", "10.0", "0 %", "1"}, sections[0].table[4])
}
