package dispatch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

func paused(names ...string) workers.Policy {
	p := workers.Policy{Paused: map[string]workers.Pause{}}
	for _, name := range names {
		p.Paused[name] = workers.Pause{}
	}
	return p
}

// holds takes the settlements, which must all say Hold, and returns the workers of their events.
func holds(t *testing.T, l *ledger) (of []string) {
	t.Helper()
	for _, s := range l.take() {
		require.Equal(t, lifecycle.Settlement{Event: s.Event, Order: s.Order}, s)
		require.True(t, s.Order.Holds())
		of = append(of, s.Event.Worker)
	}
	return of
}

// What waits when a worker is paused is set aside, and so is what comes later; other workers, and what runs, go on.
func TestPausedWorkersStartNothing(t *testing.T) {
	d, l := newDispatcher(t, Config{Threads: 1, Slots: 4})
	for _, name := range []string{"a", "b"} {
		d.Install(workers.Only(worker("o", name)))
		learn(t, d, 0, "o", name, time.Microsecond)
	}
	l.take()
	d.Submit(tasks("o", "a", 3))
	running := d.Next(0, 1)
	require.Len(t, running, 1)
	d.Submit(tasks("o", "b", 1))
	setPolicy(d, "o", paused("a"))
	require.Equal(t, []string{"a", "a"}, holds(t, l), "those that waited")
	require.Equal(t, 1, d.Figures().Stats().Queued)

	retried := task("o", "a", 9)
	retried.Attempt = 2
	crashed := task("o", "a", 10)
	crashed.Attempt, crashed.Crashes = 2, 1
	d.Submit([]*lifecycle.Delivery{retried, crashed, task("o", "a", 11), task("o", "b", 12)})
	require.Equal(t, []string{"a", "a", "a"}, holds(t, l), "first runs, retries, and runs after crashes")
	next := d.Next(0, 4)
	require.Len(t, next, 2)
	for _, a := range next {
		require.Equal(t, "b", a.Worker.Name)
	}
	report(d, 0, time.Microsecond, running)
	require.Equal(t, lifecycle.Ack, l.take()[0].Outcome.Verdict, "what ran when the pause began may end")

	setPolicy(d, "o", paused(workers.EveryWorker))
	d.Report(0, []lifecycle.Report{notStarted(next[0]), notStarted(next[1])})
	require.Equal(t, []string{"b", "b"}, holds(t, l), "a thread gave them back")

	setPolicy(d, "o", workers.Policy{})
	back := task("o", "a", 9)
	back.Parked = true
	d.Submit([]*lifecycle.Delivery{back})
	require.Equal(t, []string{"9"}, ids(d.Next(0, 1)), "resumed")
	d.Submit(tasks("o", "b", 1))
	require.Equal(t, lifecycle.Park, l.take()[0].Order, "new events go behind those that waited")
	require.True(t, d.Through("o", d.parks["o"]))
}

// A pause of one worker does not send the events of another one behind those that wait for it.
func TestOthersDoNotQueueBehindAPausedWorker(t *testing.T) {
	d, l := newDispatcher(t, Config{Threads: 1})
	d.Install(workers.Only(worker("o", "a")))
	d.Install(workers.Only(worker("o", "b")))
	setPolicy(d, "o", paused("a"))
	d.Submit(append(tasks("o", "a", 2), tasks("o", "b", 1)...))
	require.Equal(t, []string{"a", "a"}, holds(t, l))
	require.Len(t, d.Next(0, 4), 1)
}

// Direct events are stored nowhere: they are refused. A run that has begun may still call workers of its owner.
func TestPausedDirectEvents(t *testing.T) {
	d, l := newDispatcher(t, Config{Threads: 1, Slots: 4})
	d.Install(workers.Only(worker("o", "a")))
	d.Install(workers.Only(worker("o", "b")))
	waits, waiting := direct("o", "a")
	d.Submit([]*lifecycle.Delivery{waits})
	setPolicy(d, "o", paused(workers.EveryWorker))
	e, c := direct("o", "a")
	d.Submit([]*lifecycle.Delivery{e})
	for _, of := range []*caller{waiting, c} {
		f := of.failed(t)
		require.Equal(t, events.ReasonUnavailable, f.Reason)
		require.Equal(t, "owner o is paused: try again later", f.Message)
	}

	setPolicy(d, "o", workers.Policy{})
	d.Submit(tasks("o", "a", 1))
	from := d.Next(0, 1)[0]
	setPolicy(d, "o", paused(workers.EveryWorker))
	call := func() (*lifecycle.Delivery, *caller) {
		e, c := direct("o", "b")
		tree, err := new(events.ServiceTree).Begin(nil, "a", events.ServiceTarget{}, "")
		require.NoError(t, err)
		e.Service = tree
		d.Calling(from, true)
		d.Submit([]*lifecycle.Delivery{e})
		return e, c
	}
	called, _ := call()
	require.Same(t, called, d.Next(0, 4)[0].Event)
	setPolicy(d, "o", paused("b"))
	_, c = call()
	require.Equal(t, "o/b is paused: try again later", c.failed(t).Message, "it is paused itself")
	require.Empty(t, l.take())
}

// An event that is to run watched is not started when its worker is paused meanwhile, and no longer counts as watched.
func TestPausedWhileWatched(t *testing.T) {
	d, l := newDispatcher(t, Config{Threads: 1})
	d.Install(workers.Only(worker("o", "a")))
	crashed := task("o", "a", 1)
	crashed.Attempt, crashed.Crashes = 2, 1
	d.Submit([]*lifecycle.Delivery{crashed})
	require.Equal(t, lifecycle.Watch, l.take()[0].Order)
	crashed.Watched = true
	d.Submit([]*lifecycle.Delivery{crashed})
	setPolicy(d, "o", paused("a"))
	require.Empty(t, d.Next(0, 1))
	require.Equal(t, []string{"a"}, holds(t, l))
	require.Zero(t, d.gates.crashes.watched)
	require.Zero(t, d.Figures().Stats().Queued)
}
