package machine

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/loadtest/report"
)

// TestPauseIsNotOmitted pauses the sender for 50 ms: the latency of all events that were due meanwhile counts from when
// they were due.
func TestPauseIsNotOmitted(t *testing.T) {
	lag, sent := report.NewRecorder(), 0
	pause := time.NewTimer(50 * time.Millisecond)
	begin := time.Now()
	err := Pace(t.Context(), begin, time.Millisecond, 100, lag, func(i int) error {
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
	require.Greater(t, lag.At(100), 35.0, "the event after the pause was due 39 ms before its end")
	late := 0
	for _, p := range lag.Hist.Distribution() {
		if p.From > int64(10*time.Millisecond) {
			late += int(p.Count)
		}
	}
	require.GreaterOrEqual(t, late, 25, "the pause weighs for all that it delayed")
}

func TestPaceEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, Pace(ctx, time.Now().Add(time.Hour), time.Second, 1, report.NewRecorder(),
		func(int) error { return nil }), context.Canceled)
}
