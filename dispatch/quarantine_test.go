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

// crashed is an event around which so many processes died.
func crashed(owner string, n, crashes int) *lifecycle.Delivery {
	e := task(owner, "w", n)
	e.Attempt, e.Crashes = crashes+1, crashes
	return e
}

// watchAll submits again what the ledger was asked to watch, and returns it.
func watchAll(d *Dispatcher, l *ledger) (batch []lifecycle.Settlement) {
	var again []*lifecycle.Delivery
	for _, s := range l.take() {
		if s.Order == lifecycle.Watch || s.Order == lifecycle.WatchAlone {
			s.Event.Watched = true
			batch, again = append(batch, s), append(again, s.Event)
		}
	}
	d.Submit(again)
	return batch
}

// Suspects are watched before they run, few at once, and more as they prove to be innocent.
func TestSuspectsAreWatchedFirst(t *testing.T) {
	d, l := newDispatcher(t, Config{Threads: 1})
	d.Install(workers.Only(worker("o", "w")))
	learn(t, d, 0, "o", "w", 20*time.Microsecond)
	l.take()
	var batch []*lifecycle.Delivery
	for i := range 20 {
		batch = append(batch, crashed("o", i, 1))
	}
	d.Submit(batch)
	require.Empty(t, d.Next(0, 64), "none is watched yet")
	for rest, most := 20, firstSuspects; rest > 0; most *= 2 {
		seen := watchAll(d, l)
		require.Len(t, seen, min(rest, most))
		require.Equal(t, lifecycle.Watch, seen[0].Order)
		d.Submit(tasks("o", "w", 1))
		var run []*lifecycle.Attempt
		for range seen {
			run = append(run, d.Next(0, 64)...)
		}
		require.Len(t, run, len(seen))
		for _, a := range run {
			require.True(t, a.Event.Watched, "they go first")
		}
		report(d, 0, time.Microsecond, d.Next(0, 64)) // others go on
		report(d, 0, time.Microsecond, run)
		rest -= len(seen)
	}
	require.Equal(t, firstSuspects, d.gates.crashes.most, "the next crash begins again")
	require.True(t, d.gates.crashes.idle())
}

// After two crashes an event runs alone, others have more time than they were held up, and after a crash alone it is
// dead.
func TestTwoCrashesRunAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := newDispatcher(t, Config{Threads: 2})
		go d.Run(t.Context())
		d.Install(workers.Only(worker("o", "w")))
		d.Submit(tasks("o", "w", 1))
		before := d.Next(0, 1)
		d.Submit([]*lifecycle.Delivery{crashed("bad", 7, 2), crashed("o", 8, 2), crashed("o", 9, 2)})
		l.take()
		d.Submit(tasks("o", "w", 5))
		require.Empty(t, d.Next(0, 64), "nothing starts any more")
		require.Empty(t, l.take(), "and what runs has time to end")
		time.Sleep(time.Second)
		report(d, 0, time.Millisecond, before)

		seen := watchAll(d, l)
		require.Len(t, seen, 1)
		require.Equal(t, "8", seen[0].Event.ID)
		require.Equal(t, lifecycle.WatchAlone, seen[0].Order)
		alone := d.Next(1, 64)
		require.Equal(t, []string{"8"}, ids(alone))
		require.Empty(t, d.Next(0, 64))
		time.Sleep(time.Second)
		l.takeWoken()
		report(d, 1, time.Millisecond, alone)
		require.NotEmpty(t, l.takeWoken())

		held := 2 * time.Second
		for start := time.Now(); time.Since(start) < workFor*held-time.Millisecond; time.Sleep(100 * time.Millisecond) {
			d.Submit(tasks("o", "w", 1))
			batch := d.Next(0, 64)
			require.NotEmpty(t, batch, "normal work")
			for _, a := range batch {
				require.Zero(t, a.Event.Crashes)
			}
			report(d, 0, time.Millisecond, batch)
		}
		time.Sleep(time.Second)
		seen = watchAll(d, l)
		require.Equal(t, "9", seen[0].Event.ID)
		report(d, 0, time.Millisecond, d.Next(0, 64))

		e := crashed("o", 10, 3)
		e.CrashedAlone, e.Kind = true, events.Fetch
		l.take()
		d.Submit([]*lifecycle.Delivery{e})
		s := l.take()[0]
		require.Equal(t, lifecycle.Dead, s.Outcome.Verdict, "a dead letter, fetch or not")
		require.Equal(t, events.ReasonCrash, s.Outcome.Failure.Reason)
		require.Equal(t, 503, s.Reply.Status)
	})
}

// A long run does not delay others forever: neither that of a neighbour, nor that of the event itself.
func TestAloneIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := newDispatcher(t, Config{Threads: 1})
		go d.Run(t.Context())
		d.Install(workers.Only(worker("o", "w")))
		d.Submit(tasks("o", "w", 1))
		long := d.Next(0, 1)
		d.Submit([]*lifecycle.Delivery{crashed("o", 8, 3)})
		time.Sleep(2*aloneFor - time.Millisecond)
		synctest.Wait()
		require.Empty(t, l.take())
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		seen := watchAll(d, l)
		require.Equal(t, lifecycle.Watch, seen[0].Order, "something else runs on")
		run := d.Next(0, 64)
		require.Equal(t, []string{"8"}, ids(run))
		d.Submit(tasks("o", "w", 1))
		require.Empty(t, d.Next(0, 64))
		time.Sleep(2*aloneFor + time.Millisecond)
		synctest.Wait()
		shared := l.take()
		require.Len(t, shared, 1)
		require.Equal(t, lifecycle.Share, shared[0].Order)
		require.Same(t, run[0].Event, shared[0].Event)
		require.Len(t, d.Next(0, 1), 1, "others go on")
		report(d, 0, time.Millisecond, append(run, long...))
		require.Equal(t, 1, d.Figures().Stats().Running)
		require.True(t, d.gates.crashes.idle())

		// A settler that takes too long to note it: the event comes back later.
		report(d, 0, time.Millisecond, nil)
		time.Sleep(time.Minute)
		late := crashed("o", 9, 2)
		d.Submit([]*lifecycle.Delivery{late})
		time.Sleep(2*aloneFor + 2*time.Millisecond)
		synctest.Wait()
		l.take()
		d.Submit(tasks("o", "w", 1))
		require.NotEmpty(t, d.Next(0, 64))
		late.Watched = true
		d.Submit([]*lifecycle.Delivery{late})
		require.Equal(t, lifecycle.Return, l.take()[0].Order)
	})
}

func TestQuarantineDrainsAndExpires(t *testing.T) {
	d, l := newDispatcher(t, Config{Threads: 1})
	d.Install(workers.Only(worker("o", "w")))
	d.Submit(tasks("o", "w", 1))
	d.Next(0, 1)
	soon := crashed("o", 1, 2)
	soon.Deadline = time.Now().Add(time.Millisecond)
	d.Submit([]*lifecycle.Delivery{soon, crashed("o", 2, 2)})
	l.take()
	d.lockedAt(time.Now().Add(aloneFor/2), d.expire)
	s := l.take()
	require.Equal(t, events.ReasonExpired, s[0].Outcome.Failure.Reason)
	d.Drain()
	for _, s := range l.take() {
		if s.Event.ID == "2" {
			require.Equal(t, lifecycle.Return, s.Order)
			require.True(t, d.gates.crashes.due().IsZero(), "Run sleeps")
			return
		}
	}
	t.Fatal("not given back")
}

// An event that others take down with their isolate again and again gets one to itself.
func TestInterruptedEventsGetAnIsolate(t *testing.T) {
	d, l := newDispatcher(t, Config{Threads: 1})
	d.Install(workers.Only(worker("o", "w")))
	e := task("o", "w", 1)
	for n := range 4 {
		d.Submit([]*lifecycle.Delivery{e})
		a := d.Next(0, 1)[0]
		require.Equal(t, n >= ownAfter, a.Own)
		d.Report(0, []lifecycle.Report{{Attempt: a, End: &lifecycle.End{Interrupted: true, Started: true}}})
		require.Equal(t, lifecycle.Retry, l.take()[0].Outcome.Verdict)
		e.Attempt++
	}
}

// A suspect that could not start is not watched: a crash meanwhile would be taken for its own.
func TestSuspectsThatMustWaitAreNotWatched(t *testing.T) {
	d, l := newDispatcher(t, Config{Threads: 1, Slots: 2, OwnerMaxRunning: 1})
	d.Install(workers.Only(worker("a", "w")))
	d.Install(workers.Only(worker("b", "w")))
	d.Install(workers.Only(worker("c", "w")))
	d.Submit([]*lifecycle.Delivery{crashed("a", 1, 1), crashed("a", 2, 1), crashed("b", 3, 1), crashed("c", 4, 1)})
	first := watchAll(d, l)
	require.Len(t, first, 2, "one of each owner, and as many as there are slots")
	require.Equal(t, []string{"1", "3"}, []string{first[0].Event.ID, first[1].Event.ID})
	run := append(d.Next(0, 1), d.Next(0, 1)...)
	report(d, 0, time.Millisecond, run[:1])
	require.Len(t, watchAll(d, l), 1)
	require.Len(t, d.Next(0, 1), 1)
}

// Parked events that come back after a crash make room as they leave, like those of the queue; so does one that is
// refused.
func TestSuspectsMakeRoom(t *testing.T) {
	d, l := newDispatcher(t, Config{Threads: 1, OwnerMaxQueued: 16})
	d.Install(workers.Only(worker("o", "w")))
	parked := func(n, crashes int) *lifecycle.Delivery {
		e := crashed("o", n, crashes)
		e.Parked = true
		return e
	}
	var batch []*lifecycle.Delivery
	for i := range 9 {
		batch = append(batch, parked(i, 1))
	}
	d.Submit(append(batch, parked(9, 2)))
	require.Empty(t, l.rooms, "more than half of a queue waits")
	for d.gates.crashes.queued() > 0 {
		watchAll(d, l)
		for run := d.Next(0, 1); len(run) > 0; run = d.Next(0, 1) {
			report(d, 0, time.Microsecond, run)
		}
	}
	require.Equal(t, room{"o", 8}, l.rooms[len(l.rooms)-1], "nothing of it is left")

	l.rooms = nil
	stranger := parked(10, 1)
	stranger.Worker = "unknown"
	nobody := parked(11, 0)
	nobody.Owner = "nobody"
	d.Submit([]*lifecycle.Delivery{stranger, nobody})
	require.Equal(t, []room{{"o", 8}, {"nobody", parkedSlack}}, l.rooms)
}

// A suspect of a queue handler runs as a batch of one. Its end makes room for the next suspects, as any other does.
func TestSuspectsOfQueueHandlersLeave(t *testing.T) {
	d, l := newDispatcher(t, Config{Threads: 1})
	w := worker("o", "w")
	w.Queue = true
	d.Install(workers.Only(w))
	for i := range firstSuspects + 1 {
		d.Submit([]*lifecycle.Delivery{crashed("o", i, 1)})
	}
	for range 2 {
		require.NotEmpty(t, watchAll(d, l))
		for batch := d.Next(0, 64); len(batch) > 0; batch = d.Next(0, 64) {
			require.Len(t, batch[0].Batch, 1)
			report(d, 0, time.Microsecond, batch)
		}
	}
	require.Zero(t, d.gates.crashes.watched)
	require.Empty(t, d.gates.crashes.noted)
}
