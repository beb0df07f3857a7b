package dispatch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// caller records what it is told.
type caller struct {
	replies []*events.Reply
	ends    int
}

func (c *caller) Reply(r *events.Reply) { c.replies = append(c.replies, r) }
func (c *caller) End()                  { c.ends++ }

// failed requires that the call has ended with one reply, a failure, and returns it.
func (c *caller) failed(t *testing.T) *events.Failure {
	t.Helper()
	require.Equal(t, []int{1, 1}, []int{len(c.replies), c.ends})
	require.NotNil(t, c.replies[0].Failure)
	return c.replies[0].Failure
}

func direct(owner, worker string) (*lifecycle.Delivery, *caller) {
	c := &caller{}
	return &lifecycle.Delivery{Event: events.Event{Kind: events.Fetch, Owner: owner, Worker: worker, ID: "d"},
		Runs: events.Runs{Attempt: 1}, Caller: c}, c
}

func TestDirectEventRuns(t *testing.T) {
	d, l := newDispatcher(t, Config{Threads: 1})
	d.Install(workers.Only(worker("o", "w")))
	e, c := direct("o", "w")
	d.Submit([]*lifecycle.Delivery{e, task("o", "w", 1)})
	batch := d.Next(0, 1)
	require.Same(t, e, batch[0].Event, "it waits in its owner's queue as others do")
	d.Report(0, []lifecycle.Report{{Attempt: batch[0], Reply: &events.Reply{Status: 201}}})
	require.Equal(t, []int{1, 0}, []int{len(c.replies), c.ends}, "the reply comes at once")
	require.Equal(t, []any{201, "d", "1-abc"}, []any{c.replies[0].Status, c.replies[0].EventID, c.replies[0].Version})
	d.Report(0, []lifecycle.Report{{Attempt: batch[0], End: &lifecycle.End{Started: true, CPU: time.Millisecond}}})
	require.Equal(t, []int{1, 1}, []int{len(c.replies), c.ends})
	require.Empty(t, l.take(), "the settler knows nothing of it")

	report(d, 0, time.Millisecond, d.Next(0, 1))
	require.Len(t, l.take(), 1)
}

// A direct event is not retried, and becomes no dead letter. Its failure is the reply.
func TestDirectEventFails(t *testing.T) {
	d, l := newDispatcher(t, Config{Threads: 1})
	w := worker("o", "w")
	w.Retries = workers.Retries{MaxAttempts: 5, Fetch: true}
	d.Install(workers.Only(w))
	for name, c := range map[string]struct {
		end    lifecycle.End
		reason events.Reason
	}{
		"exception": {lifecycle.End{Started: true, Failure: events.Fail(events.ReasonException, "no")},
			events.ReasonException},
		"retry":       {lifecycle.End{Started: true, Retry: true}, events.ReasonException},
		"interrupted": {lifecycle.End{Started: true, Interrupted: true}, events.ReasonUnavailable},
		"crash": {lifecycle.End{Started: true, Lost: true, Failure: events.Fail(events.ReasonCrash, "x")},
			events.ReasonCrash},
	} {
		e, caller := direct("o", "w")
		d.Submit([]*lifecycle.Delivery{e})
		batch := d.Next(0, 1)
		require.Len(t, batch, 1, name)
		d.Report(0, []lifecycle.Report{{Attempt: batch[0], End: &c.end}})
		require.Equal(t, c.reason, caller.failed(t).Reason, name)
		require.Nil(t, d.Next(0, 1), name)
	}
	require.Empty(t, l.take())
}

func TestDirectEventIsRefused(t *testing.T) {
	d, l := newDispatcher(t, Config{Threads: 1, OwnerMaxQueued: 2})
	w := worker("o", "w")
	w.Handlers = []events.Kind{events.Task}
	d.Install(workers.Only(w))
	e, c := direct("o", "none")
	late, lc := direct("o", "w")
	late.Kind, late.Deadline = events.Task, time.Now().Add(-time.Second)
	handler, hc := direct("o", "w")
	d.Submit([]*lifecycle.Delivery{e, late, handler})
	require.Equal(t, events.ReasonNoWorker, c.failed(t).Reason)
	require.Equal(t, events.ReasonExpired, lc.failed(t).Reason)
	require.Contains(t, lc.failed(t).Message, late.Deadline.UTC().Format(time.RFC3339))
	require.Equal(t, events.ReasonNoHandler, hc.failed(t).Reason)
	require.Empty(t, l.take())
}

// A full queue refuses direct events, where others are parked. Parked events do not delay direct ones.
func TestDirectEventOfABusyOwner(t *testing.T) {
	d, l := newDispatcher(t, Config{Threads: 1, OwnerMaxQueued: 4})
	d.Install(workers.Only(worker("o", "w")))
	learn(t, d, 0, "o", "w", time.Millisecond)
	l.take()
	d.Submit(tasks("o", "w", 6))
	require.Len(t, l.take(), 2, "two are parked")
	e, c := direct("o", "w")
	d.Submit([]*lifecycle.Delivery{e})
	f := c.failed(t)
	require.Equal(t, events.ReasonUnavailable, f.Reason)
	require.Equal(t, 503, f.Reason.Status())
	require.Equal(t, "4 events of owner o wait already: try again", f.Message)

	report(d, 0, time.Millisecond, d.Next(0, 1))
	d.Submit(tasks("o", "w", 1))
	s := l.take()
	require.Equal(t, lifecycle.Park, s[len(s)-1].Order, "it goes behind the parked ones")
	e, c = direct("o", "w")
	d.Submit([]*lifecycle.Delivery{e})
	require.Empty(t, c.replies)
	require.Equal(t, 4, d.Figures().Stats().Queued)
}

// Direct events have nowhere to go back to when the process drains: they run.
func TestDirectEventRunsWhileDraining(t *testing.T) {
	d, l := newDispatcher(t, Config{Threads: 1})
	one := worker("o", "one")
	one.Concurrency = 2
	d.Install(workers.Only(one))
	d.SetProcesses(2)
	started, startedCall := direct("o", "one")
	d.Submit([]*lifecycle.Delivery{started})
	running := d.Next(0, 1)
	require.Len(t, running, 1)

	waits, waitsCall := direct("o", "one") // for the limit of its worker
	d.Submit([]*lifecycle.Delivery{waits, task("o", "one", 1)})
	d.Drain()
	require.Len(t, l.take(), 1, "the event of the stream goes back")
	d.Report(0, []lifecycle.Report{notStarted(running[0])})
	require.Empty(t, startedCall.replies, "the thread could not start it: it is tried again")
	for range 2 {
		batch := d.Next(0, 1)
		require.Len(t, batch, 1)
		report(d, 0, time.Millisecond, batch)
	}
	require.Equal(t, []int{1, 1}, []int{startedCall.ends, waitsCall.ends})
	late, lateCall := direct("o", "one") // a request that was on its way
	d.Submit([]*lifecycle.Delivery{late})
	report(d, 0, time.Millisecond, d.Next(0, 1))
	require.Equal(t, 1, lateCall.ends)
	require.Empty(t, l.take())
}
