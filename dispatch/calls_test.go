package dispatch

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// calling has a run call a worker of its owner. The caller says when the call is over.
func calling(t *testing.T, d *Dispatcher, from *lifecycle.Attempt, worker string) (*lifecycle.Delivery, *caller) {
	t.Helper()
	s, err := new(events.ServiceTree).Begin(from.Event.Service, from.Worker.Name, events.ServiceTarget{Worker: worker}, "")
	require.NoError(t, err)
	e, c := direct(from.Worker.Owner, worker)
	e.Kind, e.Service = events.Task, s
	d.Calling(from, true)
	d.Submit([]*lifecycle.Delivery{e})
	return e, c
}

// over reports that a run has ended, and to the run that called it that the call is over.
func over(d *Dispatcher, thread int, a, from *lifecycle.Attempt) {
	report(d, thread, time.Millisecond, []*lifecycle.Attempt{a})
	if from != nil {
		d.Calling(from, false)
	}
}

// All places of an owner and all slots may belong to runs that wait for calls. What they call starts all the same, and
// before other events of the owner. One place is never two.
func TestCallsTakeTheirCallersPlace(t *testing.T) {
	d, _ := newDispatcher(t, Config{Threads: 1, Slots: 1, OwnerMaxRunning: 1})
	d.Install(workers.Only(worker("o", "w")))
	d.Submit(tasks("o", "w", 2))
	root := d.Next(0, 1)[0]
	require.Empty(t, d.Next(0, 1))
	chain := []*lifecycle.Attempt{root}
	for range events.MaxServiceDepth {
		e, _ := calling(t, d, chain[len(chain)-1], "w")
		batch := d.Next(0, 1)
		require.Len(t, batch, 1)
		require.Same(t, e, batch[0].Event, "the other task of the owner came first, and waits")
		require.Empty(t, d.Next(0, 1))
		chain = append(chain, batch[0])
	}
	for i := len(chain) - 1; i > 0; i-- {
		require.Empty(t, d.Next(0, 1))
		over(d, 0, chain[i], chain[i-1])
	}
	require.Empty(t, d.Next(0, 1), "the root has its place again")
	over(d, 0, root, nil)
	require.Len(t, d.Next(0, 1), 1)
}

// A called event is not left to another thread that is warm for it: its caller waits, and its thread has the time. The
// context that this makes is needed with each call.
func TestCalledEventsStayWithTheirCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := newDispatcher(t, Config{Threads: 2})
		go d.Run(t.Context())
		d.Install(workers.Only(worker("o", "calls")))
		d.Install(workers.Only(worker("o", "called")))
		learn(t, d, 1, "o", "calls", time.Microsecond)
		learn(t, d, 0, "o", "called", time.Microsecond)
		for range 5 {
			require.Empty(t, d.Next(0, 1))
			d.Submit(tasks("o", "calls", 1))
			root := d.Next(1, 1)[0]
			l.takeWoken()
			e, _ := calling(t, d, root, "called")
			batch := d.Next(1, 1)
			require.Len(t, batch, 1)
			require.Same(t, e, batch[0].Event)
			require.Empty(t, l.takeWoken())
			over(d, 1, batch[0], root)
			over(d, 1, root, nil)
			l.take()
			time.Sleep(keepSpare / 2)
		}
		require.Empty(t, l.takeClosing())
	})
}

// The thread whose run calls takes the called event, if no more is to run. If it has no slot for it, another one does.
func TestCallWakesNoOtherThread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := newDispatcher(t, Config{Threads: 2, Slots: 1, OwnerMaxRunning: 2})
		d.Install(workers.Only(worker("o", "w")))
		learn(t, d, 0, "o", "w", time.Microsecond)
		learn(t, d, 1, "o", "w", time.Microsecond)
		d.Submit(tasks("o", "w", 1))
		root := d.Next(1, 1)[0]
		require.Empty(t, d.Next(0, 1))
		l.takeWoken()
		e, _ := calling(t, d, root, "w")
		require.Empty(t, l.takeWoken(), "thread 1 comes")
		batch := d.Next(1, 1)
		require.Len(t, batch, 1)
		require.Same(t, e, batch[0].Event)
		over(d, 1, batch[0], root)

		e, _ = calling(t, d, root, "w")
		d.Calling(root, false) // it has been answered before, and has its slot again
		require.Empty(t, l.takeWoken())
		require.Empty(t, d.Next(1, 0), "it has no slot")
		require.Equal(t, []int{0}, l.takeWoken())
		batch = d.Next(0, 1)
		require.Len(t, batch, 1)
		require.Same(t, e, batch[0].Event)

		// A thread that was woken, and is late, is not waited for any longer because another one comes.
		require.Empty(t, d.Next(1, 0))
		over(d, 0, batch[0], nil)
		require.Empty(t, d.Next(0, 1))
		d.Submit(tasks("o", "w", 1))
		require.Equal(t, []int{0}, l.takeWoken())
		time.Sleep(2 * lateAfter)
		require.True(t, d.othersWait(nil, own(d), 0, own(d).runnable, time.Now()))
		d.Calling(root, true)
		require.True(t, d.othersWait(nil, own(d), 0, own(d).runnable, time.Now()))
	})
}

// A run that calls several workers at once gives one place, and they take it in turn, in the order of the calls.
func TestCallsOfOneRun(t *testing.T) {
	d, _ := newDispatcher(t, Config{Threads: 1, OwnerMaxRunning: 1})
	d.Install(workers.Only(worker("o", "w")))
	d.Submit(tasks("o", "w", 1))
	root := d.Next(0, 1)[0]
	var list []*lifecycle.Delivery
	for range 3 {
		e, _ := calling(t, d, root, "w")
		list = append(list, e)
	}
	for _, e := range list {
		batch := d.Next(0, 64)
		require.Len(t, batch, 1)
		require.Same(t, e, batch[0].Event)
		over(d, 0, batch[0], root)
	}
	require.Zero(t, root.Slot.(*run).calls)
	require.Equal(t, []int{1, 0}, []int{d.owners["o"].running, d.owners["o"].calling})
}

// A run that ends before what it called leaves nothing counted. A full queue refuses no call.
func TestCallOutlivesItsCaller(t *testing.T) {
	d, l := newDispatcher(t, Config{Threads: 1, OwnerMaxRunning: 1, OwnerMaxQueued: 4})
	d.Install(workers.Only(worker("o", "w")))
	learn(t, d, 0, "o", "w", time.Millisecond)
	l.take()
	d.Submit(tasks("o", "w", 1))
	root := d.Next(0, 1)[0]
	d.Submit(tasks("o", "w", 5))
	require.Len(t, l.take(), 1, "one is parked: the queue is full")
	_, c := calling(t, d, root, "w")
	over(d, 0, root, nil)
	called := d.Next(0, 64)
	require.Len(t, called, 1)
	require.Empty(t, d.Next(0, 64), "it has the place of its own now")
	over(d, 0, called[0], root)
	require.Equal(t, 1, c.ends)
	o := d.owners["o"]
	require.Equal(t, []int{0, 0, 0}, []int{o.running, o.calling, own(d).idle.threads[0].attempts})
}

// A worker that has a limit, and calls itself, would wait for itself.
func TestCallOfALimitedWorker(t *testing.T) {
	d, _ := newDispatcher(t, Config{Threads: 1})
	d.Install(limitedTo(1, "o", "w"))
	d.Install(workers.Only(worker("o", "v")))
	d.Submit(tasks("o", "w", 1))
	root := d.Next(0, 1)[0]
	_, c := calling(t, d, root, "w")
	f := c.failed(t)
	require.Equal(t, events.ReasonUnavailable, f.Reason)
	require.Equal(t, "worker o/w has a limit of 1 events at once, and would wait for itself", f.Message)
	d.Calling(root, false)
	calling(t, d, root, "v")
	between := d.Next(0, 64)
	require.Len(t, between, 1, "another worker may be called")
	_, c = calling(t, d, between[0], "w")
	c.failed(t)
}

// While an event must run alone, what it calls starts, and so does what those call that must end before.
func TestCallsOfAnEventThatRunsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := newDispatcher(t, Config{Threads: 1, OwnerMaxRunning: 1})
		go d.Run(t.Context())
		d.Install(workers.Only(worker("o", "w")))
		d.Install(workers.Only(worker("bad", "w")))
		d.Submit(tasks("o", "w", 2))
		before := d.Next(0, 1)[0]
		early, _ := calling(t, d, before, "w")
		d.Submit([]*lifecycle.Delivery{crashed("bad", 7, 2)})
		require.Equal(t, clearing, d.gates.crashes.phase)
		called := d.Next(0, 64)
		require.Len(t, called, 1)
		require.Same(t, early, called[0].Event, "it waited when the phase began")
		late, _ := calling(t, d, called[0], "w")
		again := d.Next(0, 64)
		require.Same(t, late, again[0].Event)
		d.Report(0, []lifecycle.Report{notStarted(again[0])})
		again = d.Next(0, 64)
		require.Same(t, late, again[0].Event, "it was given back")
		over(d, 0, again[0], called[0])
		over(d, 0, called[0], before)
		over(d, 0, before, nil)

		require.Len(t, watchAll(d, l), 1)
		lone := d.Next(0, 64)
		require.Len(t, lone, 1)
		require.Equal(t, alone, d.gates.crashes.phase)
		inner, _ := calling(t, d, lone[0], "w")
		called = d.Next(0, 64)
		require.Len(t, called, 1)
		require.Same(t, inner, called[0].Event)
		over(d, 0, called[0], lone[0])
		require.Empty(t, d.Next(0, 64), "others wait")
		over(d, 0, lone[0], nil)
		require.Len(t, d.Next(0, 64), 1)
	})
}
