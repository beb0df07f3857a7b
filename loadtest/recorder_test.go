package main

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPercentiles(t *testing.T) {
	r := newRecorder()
	for i := 1; i <= 10_000; i++ {
		r.record(time.Duration(i) * 10 * time.Microsecond)
	}
	got := map[string]float64{}
	curve := r.report(got)
	for name, want := range map[string]float64{"p50 ms": 50, "p90 ms": 90, "p99 ms": 99, "p99.9 ms": 99.9, "p99.99 ms": 99.99, "max ms": 100} {
		require.InEpsilon(t, want, got[name], 0.002, name)
	}
	require.Equal(t, 100.0, curve[len(curve)-1].Percentile)
	for i := 1; i < len(curve); i++ {
		require.GreaterOrEqual(t, curve[i].MS, curve[i-1].MS)
	}
}

func TestPercentilesThatFewValuesDoNotHave(t *testing.T) {
	r := newRecorder()
	got := map[string]float64{}
	require.Empty(t, r.report(got))
	require.Empty(t, got)
	for range 500 {
		r.record(time.Millisecond)
	}
	r.record(24 * time.Hour) // ten minutes are the maximum
	r.record(-time.Second)
	r.report(got)
	require.Contains(t, got, "p99 ms")
	require.NotContains(t, got, "p99.9 ms")
	require.InEpsilon(t, 600_000, got["max ms"], 0.002)
}

// TestPauseIsNotOmitted pauses the sender for 50 ms: the latency of all events that were due meanwhile counts from when
// they were due.
func TestPauseIsNotOmitted(t *testing.T) {
	lag, sent := newRecorder(), 0
	pause := time.NewTimer(50 * time.Millisecond)
	begin := time.Now()
	err := pace(t.Context(), begin, time.Millisecond, 100, lag, func(i int) error {
		require.Equal(t, sent, i)
		sent++
		if i == 10 {
			<-pause.C
		}
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, 100, sent)
	require.GreaterOrEqual(t, time.Since(begin), 99*time.Millisecond, "nothing is sent before it is due")
	require.Greater(t, lag.at(100), 35.0, "the event after the pause was due 39 ms before its end")
	late := 0
	for _, p := range lag.hist.Distribution() {
		if p.From > int64(10*time.Millisecond) {
			late += int(p.Count)
		}
	}
	require.GreaterOrEqual(t, late, 25, "the pause weighs for all that it delayed")
}

func TestPaceEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, pace(ctx, time.Now().Add(time.Hour), time.Second, 1, newRecorder(), func(int) error { return nil }), context.Canceled)
}
