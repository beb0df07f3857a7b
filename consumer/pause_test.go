package consumer_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer/schedule"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// The last tick of a schedule is a tick: neither the moment of its deploy nor that of a pause or of its end.
func TestPausesAreNoTicks(t *testing.T) {
	t.Parallel()
	_, js, _ := assetsOf(t)
	book := schedule.NewStore(js, subjects)
	s := workers.Schedule{Name: "night", Cron: "@every 1h"}
	w := workers.Only(&workers.Worker{Owner: "acme", Name: "w", Number: 1, DeployedAt: time.Now().Add(-time.Minute),
		Spec: workers.Spec{Schedules: []workers.Schedule{s}}})
	last := func() time.Time {
		st, err := book.Status(t.Context(), w, s)
		require.NoError(t, err)
		require.Equal(t, st.Paused, st.Next.IsZero())
		return st.Last
	}
	both := func(want time.Time) {
		require.Equal(t, want, last())
		require.NoError(t, book.Pause(t.Context(), w, s))
		require.Equal(t, want, last())
		require.NoError(t, book.Resume(t.Context(), w, s))
		require.Equal(t, want, last())
	}
	both(time.Time{})

	// States that a process made, as earlier binaries write them, and as this one does.
	tick := time.Now().Add(-2 * time.Hour).UTC().Truncate(time.Second)
	for _, ticked := range []int64{0, tick.Unix()} {
		state, err := json.Marshal(map[string]any{"last": tick.Unix(), "ticked": ticked, "cron": s.Cron,
			"deployed": w.Deployment.At.UnixMilli(), "number": 1, "node": "n"})
		require.NoError(t, err)
		st, err := js.Stream(t.Context(), events.StreamSchedules)
		require.NoError(t, err)
		require.NoError(t, st.Purge(t.Context()))
		_, err = js.Publish(t.Context(), subjects.ScheduleState("acme", "w", "night"), state)
		require.NoError(t, err)
		both(tick)
		both(tick)
	}
}
