package flow_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/internal/operate/flow"
)

// The minutes of processes are added up, with those in between in which nothing happened. A process whose clock is far
// off makes the list no longer.
func TestHourOfProcesses(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	minute := func(n int, ended, failed uint64, buckets ...uint64) control.Minute {
		return control.Minute{At: at.Add(time.Duration(n) * time.Minute), Ended: ended, Failed: failed, Duration: buckets}
	}
	bounds := control.Histogram{Bounds: []float64{0.001, 0.01, 0.1}}
	got := flow.HourOf([]control.Flow{
		{Duration: bounds, Minutes: []control.Minute{minute(0, 60, 6, 60, 0, 0), minute(3, 30, 0, 30, 0, 0)}},
		{Duration: bounds, Minutes: []control.Minute{minute(3, 30, 3, 0, 30, 0), minute(1, 0, 0)}},
	})
	require.Len(t, got, 4)
	require.Equal(t, []any{at, uint64(60), uint64(6)}, []any{got[0].At, got[0].Events, got[0].Failed})
	require.Zero(t, got[2].Events)
	require.Nil(t, got[2].P99)
	require.EqualValues(t, 60, got[3].Events)
	require.EqualValues(t, 3, got[3].Failed)
	require.InDelta(t, 1, *got[3].P50, 1e-9, "30 of 60 took at most 1 ms")
	require.InDelta(t, 9.82, *got[3].P99, 0.01)

	got = flow.HourOf([]control.Flow{{Minutes: []control.Minute{minute(-1e6, 1, 0), minute(0, 60, 0)}}})
	require.Len(t, got, control.KeptMinutes)
	require.Equal(t, at, got[len(got)-1].At)
	require.Empty(t, flow.HourOf(nil))
}
