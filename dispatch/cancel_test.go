package dispatch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// What waits is settled as cancelled at once, what runs is ended by its thread, and its failure is no retry, no dead
// letter and no failed run of its version.
func TestCancel(t *testing.T) {
	t.Parallel()
	d, l := newDispatcher(t, Config{Threads: 1, Slots: 4})
	d.Install(workers.Only(worker("o", "a")))
	learn(t, d, 0, "o", "a", time.Microsecond)
	l.take()
	batch := tasks("o", "a", 3)
	d.Submit(batch)
	running := d.Next(0, 1)
	require.Equal(t, []string{"0"}, ids(running))
	require.Equal(t, batch[1:2], d.Cancel(batch[:2], false))
	require.Empty(t, l.ending, "what has begun is left alone")
	require.Empty(t, d.Cancel(batch[:2], true))
	require.Equal(t, batch[:1], l.ending)
	cancelled := func(e *lifecycle.Delivery) {
		t.Helper()
		all := l.take()
		require.Len(t, all, 1)
		require.Equal(t, e, all[0].Event)
		require.Equal(t, lifecycle.Ack, all[0].Outcome.Verdict)
		require.Equal(t, events.ReasonCancelled, all[0].Outcome.Failure.Reason)
		require.Equal(t, events.ReasonCancelled, all[0].Reply.Failure.Reason)
	}
	cancelled(batch[1])
	before := d.Figures().Stats().Queued
	d.Report(0, []lifecycle.Report{{Attempt: running[0], End: &lifecycle.End{Started: true,
		Failure: events.Fail(events.ReasonCancelled, "x")}}})
	cancelled(batch[0])
	require.Equal(t, 1, before)
	require.Equal(t, []string{"2"}, ids(d.Next(0, 4)))
}

// An event that is cancelled in the quarantine, before it is watched or when it is about to run, leaves its place to
// others.
func TestCancelInQuarantine(t *testing.T) {
	t.Parallel()
	d, l := newDispatcher(t, Config{Threads: 1})
	d.Install(workers.Only(worker("o", "w")))
	learn(t, d, 0, "o", "w", 20*time.Microsecond)
	l.take()
	var batch []*lifecycle.Delivery
	for i := range 3 * firstSuspects {
		batch = append(batch, crashed("o", i, 1))
	}
	d.Submit(batch)
	for range 2 {
		seen := watchAll(d, l)
		require.NotEmpty(t, seen, "places are free")
		ready := make([]*lifecycle.Delivery, len(seen))
		for i, s := range seen {
			ready[i] = s.Event
		}
		require.ElementsMatch(t, ready, d.Cancel(ready, false))
	}
	l.take()
	d.Cancel(batch, true)
	l.take()
	require.Zero(t, d.Figures().Stats().Queued)
	alone := crashed("o", 99, 2)
	d.Submit([]*lifecycle.Delivery{alone})
	seen := watchAll(d, l)
	require.Len(t, seen, 1)
	require.Equal(t, []*lifecycle.Delivery{alone}, d.Cancel([]*lifecycle.Delivery{alone}, false))
	require.Equal(t, open, d.gates.crashes.phase)
	require.True(t, d.gates.crashes.idle())
}
