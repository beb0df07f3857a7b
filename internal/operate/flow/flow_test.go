package flow_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/internal/operate/flow"
)

func hist(buckets ...uint64) control.Histogram {
	h := control.Histogram{Bounds: []float64{0.001, 0.01, 0.1}, Buckets: buckets}
	for _, n := range buckets {
		h.Count += n
	}
	return h
}

func snapshots() (before, now flow.Snapshot) {
	at := time.Unix(1_700_000_000, 0)
	process := func(id string, at time.Time, duration control.Histogram, failed uint64) control.Flow {
		return control.Flow{Member: control.Member{ID: id, Node: "node-" + id}, At: at, Duration: duration, Failed: failed,
			Owners: []control.OwnerFlow{}}
	}
	before = flow.Snapshot{At: at, Flows: []control.Flow{process("a", at, hist(10, 0, 0), 5),
		process("gone", at, hist(1, 1, 1), 0), process("b", at.Add(time.Hour), hist(0, 0, 0), 0)}}
	a, b := process("a", at.Add(2*time.Second), hist(30, 0, 0), 6), process("b", at.Add(time.Hour+4*time.Second),
		hist(0, 0, 8), 0)
	a.Owners = []control.OwnerFlow{{Owner: "acme", Queued: 1, Running: 2}, {Owner: "beta", Queued: 3, Parking: true}}
	worker := func(state string, ended, failed uint64, buckets ...uint64) control.WorkerFlow {
		return control.WorkerFlow{Worker: "acme/w", State: state, Ended: ended, Failed: failed, Duration: buckets, Last: at}
	}
	before.Flows[0].Workers = []control.WorkerFlow{worker("idle", 10, 1, 10, 0, 0)}
	a.Workers = []control.WorkerFlow{worker("idle", 30, 3, 30, 0, 0), {Worker: "acme/x", State: "ephemeral", Ended: 2,
		Duration: []uint64{0, 2, 0}}}
	b.Workers = []control.WorkerFlow{worker("active", 8, 0, 0, 0, 8)}
	b.Owners, b.Draining = []control.OwnerFlow{{Owner: "acme", Queued: 1}}, true
	now = flow.Snapshot{At: at.Add(2 * time.Second), Flows: []control.Flow{b, a, process("c", at, hist(100, 0, 0), 9)},
		Missing: []control.Member{{Node: "old"}}}
	now.Stored.Events = &control.StreamStats{Messages: 7, Oldest: at.Add(-58 * time.Second)}
	now.Stored.Dead = &control.StreamStats{Messages: 3}
	return before, now
}

// Rates are those between two snapshots, by the clock of each process. One that is new has none.
func TestBetween(t *testing.T) {
	t.Parallel()
	f := flow.Between(snapshots())
	require.InDelta(t, 20/2.0+8/4.0, f.Events, 0.001)
	require.InDelta(t, 0.5, f.Failed, 0.001)
	require.InDelta(t, 0.7, *f.DurationP50, 0.0001, "14 of 28, of which 20 took at most 1 ms")
	require.InDelta(t, 96.85, *f.DurationP99, 0.01)
	require.Nil(t, f.WaitP50)
	require.Equal(t, []flow.Owner{{"beta", 3, 0, true}, {"acme", 2, 2, false}}, f.Owners)
	require.Equal(t, []string{"old"}, f.Missing)
	require.Equal(t, []bool{false, false, true}, []bool{f.Processes[0].New, f.Processes[1].New, f.Processes[2].New})
	require.InDelta(t, 60, *f.Stored.OldestSeconds, 0.001)
	require.Len(t, f.Workers, 2)
	w := f.Workers[0]
	require.Equal(t, []any{"acme/w", "active"}, []any{w.Worker, w.State}, "what the process has that has most of it")
	require.InDelta(t, 20/2.0+8/4.0, w.Events, 0.001)
	require.InDelta(t, 1, w.Failed, 0.001)
	require.InDelta(t, 0.7, *w.P50, 0.0001)
	require.InDelta(t, 96.85, *w.P99, 0.01)
	require.InDelta(t, 1, f.Workers[1].Events, 0.001, "it has begun to run since")
	require.Equal(t, "ephemeral", f.Workers[1].State)
	text, err := json.Marshal(f)
	require.NoError(t, err)
	require.Contains(t, string(text), `"eventsPerSecond":12,`)
	require.Contains(t, string(text), `"waitP50Ms":null`)

}

// What one worker has done is counted since it was installed; its rates are those between two snapshots.
func TestFiguresOfAWorker(t *testing.T) {
	t.Parallel()
	before, now := snapshots()
	f := flow.FiguresOf("acme/w", before, now)
	require.True(t, f.Rated)
	require.InDelta(t, 20/2.0+8/4.0, f.Worker.Events, 0.001)
	require.Equal(t, []any{"active", uint64(38), uint64(3), 2, []string{"old"}},
		[]any{f.State, f.Ended, f.FailedInAll, f.Processes, f.Missing})
	require.InDelta(t, 19/30.0, *f.P50, 0.001, "of all 38, of which 30 took at most 1 ms")
	f = flow.FiguresOf("acme/w", flow.Snapshot{}, now)
	require.False(t, f.Rated)
	require.EqualValues(t, 38, f.Ended)
	f = flow.FiguresOf("acme/none", before, now)
	require.Equal(t, []any{"offline", uint64(0), 0}, []any{f.State, f.Ended, f.Processes})
	require.Nil(t, f.P99)
}
