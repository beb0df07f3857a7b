package flow_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/internal/operate/flow"
)

// limited is a limit of an owner, or of a worker, with what one process has of its events.
func limited(owner, worker string, limit, queued, running int) control.LimitFlow {
	return control.LimitFlow{Owner: owner, Worker: worker, Limit: limit, Queued: queued, Running: running}
}

func TestReachedLimitsAreThoseThatHoldBackEvents(t *testing.T) {
	t.Parallel()
	flows := []control.Flow{
		{Limits: []control.LimitFlow{limited("a", "w", 4, 9, 2), limited("b", "", 100, 40, 10), limited("c", "", 3, 0, 3)}},
		{Limits: []control.LimitFlow{limited("a", "w", 4, 1, 2), limited("b", "", 100, 40, 10), limited("d", "", 7, 80, 3)}},
	}
	require.Equal(t, []flow.Limit{
		{LimitFlow: limited("d", "", 7, 80, 3)}, {LimitFlow: limited("a", "w", 4, 10, 4)},
	}, flow.ReachedLimits(flows), "80 more of b may start, and nothing of c waits")

	var many control.Flow
	for i := range 100 {
		many.Limits = append(many.Limits, limited("a", string(rune('a'+i)), 1, i+1, 1))
	}
	reached := flow.ReachedLimits([]control.Flow{many})
	require.Len(t, reached, control.MaxFlowLimits)
	require.Equal(t, 100, reached[0].Queued)
}

// Events that no further process would start want none; all others do.
func TestScaleWantsNothingForEventsThatLimitsHoldBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stored, parked uint64
		flow           control.Flow
		limits         []flow.Limit
		limited        uint64
		wanted         int
	}{
		"a worker at its limit": {1000, 500, control.Flow{Held: 52, Queued: 50, Running: 2},
			[]flow.Limit{{LimitFlow: limited("a", "w", 2, 50, 2), Stored: 1500}}, 1498, 1},
		"below its limit": {1000, 0, control.Flow{Held: 52, Queued: 50, Running: 2},
			[]flow.Limit{{LimitFlow: limited("a", "w", 42, 50, 2), Stored: 1000}}, 958, 4},
		"other events wait too": {1000, 0, control.Flow{Held: 52, Queued: 50, Running: 2},
			[]flow.Limit{{LimitFlow: limited("a", "w", 2, 50, 2), Stored: 700}}, 698, 30},
		"an owner with a worker, both at their limits": {1000, 0, control.Flow{Held: 60, Queued: 50, Running: 10},
			[]flow.Limit{{LimitFlow: limited("a", "", 10, 50, 10), Stored: 900},
				{LimitFlow: limited("a", "w", 2, 20, 2), Stored: 600}}, 890, 10},
		"an owner below its limit, with a worker at its own": {1000, 0, control.Flow{Held: 60, Queued: 50, Running: 10},
			[]flow.Limit{{LimitFlow: limited("a", "", 40, 50, 10), Stored: 900},
				{LimitFlow: limited("a", "w", 2, 20, 2), Stored: 600}}, 860, 13},
		"direct events": {0, 0, control.Flow{Queued: 50, Running: 2},
			[]flow.Limit{{LimitFlow: limited("a", "w", 2, 50, 2)}}, 50, 1},
		"more run than the limit allows now": {100, 0, control.Flow{Held: 60, Queued: 50, Running: 10},
			[]flow.Limit{{LimitFlow: limited("a", "w", 2, 50, 10), Stored: 100}}, 90, 1},
		// 300 wait for their next attempt, perhaps of the worker: they are not waiting, and may not hide others.
		"events that wait for their next attempt": {1000, 0, control.Flow{Held: 352, Queued: 50, Running: 2, Waiting: 300},
			[]flow.Limit{{LimitFlow: limited("a", "w", 2, 50, 2), Stored: 800}}, 498, 20},
	} {
		s := loaded(c.stored, c.parked, 0)
		c.flow.Busy = s.Flows[0].Busy
		s.Flows[0], s.Limits = c.flow, c.limits
		got := scaleOf(t, s, 10)
		require.Equal(t, c.limited, got.Limited, name)
		require.Equal(t, c.wanted, got.Wanted, "%s: %+v", name, got)
	}
}

// Limits hide no events of others, and more events of any kind never want fewer processes.
func TestScaleHidesOnlyWhatLimitsHoldBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 1000)
		limit, running, queued := n.Draw(t, "limit"), n.Draw(t, "running"), n.Draw(t, "queued")
		elsewhere, retrying, others := n.Draw(t, "elsewhere"), n.Draw(t, "retrying"), n.Draw(t, "others")
		of := func(elsewhere, others int) flow.Scale {
			stored := uint64(running + queued + retrying + elsewhere)
			s := loaded(stored+uint64(others), 0, 0)
			busy := s.Flows[0].Busy
			s.Flows[0] = control.Flow{Busy: busy, Queued: queued, Running: running, Waiting: retrying,
				Held: running + queued + retrying}
			s.Limits = []flow.Limit{{LimitFlow: limited("a", "w", limit, queued, running), Stored: stored}}
			return scaleOf(t, s, 10)
		}
		now := of(elsewhere, others)
		mayStart := others + min(queued+elsewhere, max(0, limit-running))
		require.GreaterOrEqual(t, int(now.Waiting-now.Limited), mayStart)
		if retrying == 0 {
			require.EqualValues(t, mayStart, now.Waiting-now.Limited)
		}
		require.GreaterOrEqual(t, of(elsewhere+n.Draw(t, "more"), others).Wanted, now.Wanted)
		require.GreaterOrEqual(t, of(elsewhere, others+n.Draw(t, "more of others")).Wanted, now.Wanted)
	})
}
