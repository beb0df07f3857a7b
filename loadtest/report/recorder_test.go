package report

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPercentiles(t *testing.T) {
	r := NewRecorder()
	for i := 1; i <= 10_000; i++ {
		r.Record(time.Duration(i) * 10 * time.Microsecond)
	}
	got := map[string]float64{}
	curve := r.Report(got)
	for name, want := range map[string]float64{"p50 ms": 50, "p90 ms": 90, "p99 ms": 99, "p99.9 ms": 99.9,
		"p99.99 ms": 99.99, "max ms": 100} {
		require.InEpsilon(t, want, got[name], 0.002, name)
	}
	require.Equal(t, 100.0, curve[len(curve)-1].Percentile)
	for i := 1; i < len(curve); i++ {
		require.GreaterOrEqual(t, curve[i].MS, curve[i-1].MS)
	}
}

func TestPercentilesThatFewValuesDoNotHave(t *testing.T) {
	r := NewRecorder()
	got := map[string]float64{}
	require.Empty(t, r.Report(got))
	require.Empty(t, got)
	for range 500 {
		r.Record(time.Millisecond)
	}
	r.Record(24 * time.Hour) // ten minutes are the maximum
	r.Record(-time.Second)
	r.Report(got)
	require.Contains(t, got, "p99 ms")
	require.NotContains(t, got, "p99.9 ms")
	require.InEpsilon(t, 600_000, got["max ms"], 0.002)
}
