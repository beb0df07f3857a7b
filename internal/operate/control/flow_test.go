package control

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestHistogramOfDurations(t *testing.T) {
	t.Parallel()
	bounds := []float64{0.001, 0.01, 0.1}
	_, ok := Histogram{Bounds: bounds, Buckets: []uint64{0, 0, 0}}.Quantile(0.5)
	require.False(t, ok)
	_, ok = Histogram{Count: 1}.Quantile(0.5)
	require.False(t, ok, "a process of another release")
	for _, c := range []struct {
		buckets []uint64
		beyond  uint64
		q       float64
		want    time.Duration
	}{
		{[]uint64{10, 0, 0}, 0, 0.5, 500 * time.Microsecond},
		{[]uint64{0, 10, 0}, 0, 0.5, 5500 * time.Microsecond},
		{[]uint64{10, 0, 10}, 0, 0.5, time.Millisecond},
		{[]uint64{10, 0, 10}, 0, 0.75, 55 * time.Millisecond},
		{[]uint64{1, 0, 0}, 0, 1, time.Millisecond},
		{[]uint64{1, 0, 0}, 99, 0.99, 100 * time.Millisecond},
	} {
		h := Histogram{Count: c.beyond, Bounds: bounds, Buckets: c.buckets}
		for _, n := range c.buckets {
			h.Count += n
		}
		got, ok := h.Quantile(c.q)
		require.True(t, ok)
		require.InDelta(t, c.want, got, float64(time.Microsecond), "%+v", c)
	}

	early, late := Histogram{Count: 5, Bounds: bounds, Buckets: []uint64{5, 0, 0}}, Histogram{Count: 9, Bounds: bounds,
		Buckets: []uint64{6, 0, 3}}
	require.Equal(t, Histogram{Count: 4, Bounds: bounds, Buckets: []uint64{1, 0, 3}}, late.Since(early))
	require.Equal(t, Histogram{Count: 0, Bounds: bounds, Buckets: []uint64{0, 0, 0}}, early.Since(late),
		"a process that began again with the same id")
	require.Equal(t, late, late.Since(Histogram{}))
	require.Equal(t, Histogram{Count: 14, Bounds: bounds, Buckets: []uint64{11, 0, 3}}, late.Add(early))
	require.Equal(t, late, Histogram{}.Add(late))
	require.Equal(t, late, late.Add(Histogram{Count: 1, Bounds: bounds[:1], Buckets: []uint64{1}}), "another release")
}
