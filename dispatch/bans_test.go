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

// lose reports that the attempts cost a thread each, as isolates does.
func lose(d *Dispatcher, thread int, batch []*lifecycle.Attempt) {
	for _, a := range batch {
		d.Report(thread,
			[]lifecycle.Report{{Attempt: a, End: &lifecycle.End{Started: true, Lost: true,
				Failure: events.Fail(events.ReasonCPU, "CPU time limit of 50ms")}}})
		d.Lost(a.Worker, a.Start)
	}
}

// one submits an event and returns its attempt or its settlement.
func one(t *testing.T, d *Dispatcher, l *ledger, e *lifecycle.Delivery) (run []*lifecycle.Attempt,
	s lifecycle.Settlement) {
	t.Helper()
	l.take()
	d.Submit([]*lifecycle.Delivery{e})
	run = d.Next(0, 1)
	if settled := l.take(); len(run) == 0 {
		require.Len(t, settled, 1)
		s = settled[0]
	}
	return run, s
}

// While a turn of an owner overstays, no other event of the owner starts. Those of others do.
func TestOwnersWaitWhileATurnOverstays(t *testing.T) {
	d, l := newDispatcher(t, Config{Threads: 1})
	for _, owner := range []string{"o", "other"} {
		d.Install(workers.Only(worker(owner, "w")))
	}
	first, _ := one(t, d, l, task("o", "w", 1))
	for range 2 { // two of its turns
		d.Overstays(first[0].Worker, true)
	}
	d.Submit([]*lifecycle.Delivery{task("o", "w", 2), task("other", "w", 3)})
	for range 3 {
		for _, a := range d.Next(0, 8) {
			require.Equal(t, "other", a.Worker.Owner)
		}
	}
	require.Equal(t, 1, d.Figures().Stats().Queued)
	d.Overstays(first[0].Worker, false)
	require.Empty(t, d.Next(0, 8))
	d.Overstays(first[0].Worker, false)
	next := d.Next(0, 8)
	require.Len(t, next, 1)
	require.Equal(t, "o", next[0].Worker.Owner)
	require.Empty(t, d.gates.owners.overstay)

	d.Overstays(worker("gone", "w"), true) // nothing of it is left
	d.Overstays(worker("gone", "w"), false)
	require.Empty(t, d.gates.owners.overstay)
}

// An event that cost a thread does not run again, although it has retries left.
func TestEventThatCostAThreadIsNotRunAgain(t *testing.T) {
	for _, kind := range events.Kinds {
		d, l := newDispatcher(t, Config{Threads: 1})
		d.Install(workers.Only(worker("o", "w")))
		e := task("o", "w", 1)
		e.Kind = kind
		run, _ := one(t, d, l, e)
		lose(d, 0, run)
		s := l.take()[0]
		require.Equal(t, lifecycle.Dead, s.Outcome.Verdict, kind)
		require.Equal(t, "crash: it cost the process a thread (cpu: CPU time limit of 50ms), so it is not run again", s.Outcome.Failure.Error())
		require.Equal(t, events.ReasonCrash, s.Reply.Failure.Reason)
		d.Install(workers.Only(worker("other", "w")))
		run, _ = one(t, d, l, task("other", "w", 2))
		require.Len(t, run, 1)
	}
	d, l := newDispatcher(t, Config{Threads: 1})
	d.Install(workers.Only(worker("o", "w")))
	run, _ := one(t, d, l, task("o", "w", 1))
	d.Report(0, []lifecycle.Report{{Attempt: run[0], Reply: &events.Reply{}}})
	l.take()
	d.Report(0, []lifecycle.Report{{Attempt: run[0], End: &lifecycle.End{Started: true, Lost: true}}})
	require.Equal(t, lifecycle.Ack, l.take()[0].Outcome.Verdict, "the reply stands")
}

// A worker that costs threads is refused for longer and longer, and then all workers of its owner, including new
// versions and workers.
func TestWorkersThatCostThreadsAreBarred(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := newDispatcher(t, Config{Threads: 4})
		for _, w := range []string{"a", "b", "c"} {
			d.Install(workers.Only(worker("o", w)))
		}
		d.Install(workers.Only(worker("other", "a")))
		free := func(owner, w string) []*lifecycle.Attempt {
			run, s := one(t, d, l, task(owner, w, 1))
			require.NotEmpty(t, run, "%v", s.Outcome.Failure)
			return run
		}
		refused := func(owner, w string) string {
			run, s := one(t, d, l, task(owner, w, 1))
			require.Empty(t, run)
			require.Equal(t, lifecycle.Dead, s.Outcome.Verdict)
			require.Equal(t, events.ReasonCrash, s.Outcome.Failure.Reason)
			e := task(owner, w, 1)
			e.Kind = events.Fetch
			_, s = one(t, d, l, e)
			require.Equal(t, lifecycle.Ack, s.Outcome.Verdict, "nothing is kept of it")
			require.Equal(t, 503, s.Reply.Status)
			return s.Outcome.Failure.Message
		}
		first := free("o", "a")
		time.Sleep(time.Second)
		lose(d, 0, first)
		require.Equal(t, "worker o/a has cost processes threads, 1 times lately: its events are refused for 1m0s more", refused("o", "a"))
		report(d, 0, time.Millisecond, free("o", "b"))
		report(d, 0, time.Millisecond, free("other", "a"))
		w := worker("o", "a")
		w.Version = "2-def"
		d.Install(workers.Only(w))
		refused("o", "a")
		d.Remove("o", "a")
		d.Install(workers.Only(w))
		refused("o", "a")
		time.Sleep(firstBan)
		again := free("o", "a")
		time.Sleep(time.Second)
		lose(d, 0, again)
		require.Contains(t, refused("o", "a"), "2 times lately: its events are refused for 2m0s more")
		require.Contains(t, refused("o", "c"), "owner o has cost")
		report(d, 0, time.Millisecond, free("other", "a"))
		time.Sleep(firstBan)
		refused("o", "a")
		report(d, 0, time.Millisecond, free("o", "c"))
		time.Sleep(firstBan)
		for range 20 {
			run := free("o", "b")
			time.Sleep(time.Second)
			lose(d, 0, run)
			refused("o", "c")
			time.Sleep(longestBan)
		}
		time.Sleep(remembered + time.Minute)
		run := free("o", "a")
		time.Sleep(time.Second)
		lose(d, 0, run)
		require.Contains(t, refused("o", "a"), "1 times lately", "the past is forgotten")
		report(d, 0, time.Millisecond, free("o", "c"))
		require.LessOrEqual(t, len(d.gates.crashes.of), 2)
	})
}

// Several events that ran at the same time count once for their worker, and ban its owner.
func TestThreadsLostTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := newDispatcher(t, Config{Threads: 4})
		d.Install(workers.Only(worker("o", "a")))
		d.Install(workers.Only(worker("o", "b")))
		d.Install(workers.Only(worker("other", "a")))
		var under []*lifecycle.Attempt
		for i := range 4 {
			run, _ := one(t, d, l, task("o", "a", i))
			under = append(under, run...)
		}
		time.Sleep(time.Second)
		lose(d, 0, under)
		for _, w := range []string{"a", "b"} {
			run, s := one(t, d, l, task("o", w, 9))
			require.Empty(t, run)
			require.Contains(t, s.Outcome.Failure.Message, "for 1m0s more")
		}
		run, _ := one(t, d, l, task("other", "a", 9))
		require.Len(t, run, 1)
	})
}

// Events that wait when their worker is banned are refused at their turn. Running events continue.
func TestBansHoldForWaitingEvents(t *testing.T) {
	d, l := newDispatcher(t, Config{Threads: 2})
	d.Install(workers.Only(worker("o", "w")))
	d.Submit(tasks("o", "w", 3))
	run := d.Next(0, 1)
	lose(d, 0, run)
	require.Empty(t, d.Next(1, 64))
	for _, s := range l.take() {
		require.Equal(t, events.ReasonCrash, s.Outcome.Failure.Reason)
	}
	require.Zero(t, d.Figures().Stats().Queued)
}

// Processes exchange their bans, and the exchange does not make them longer.
func TestBansAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, l := newDispatcher(t, Config{Threads: 1})
		b, m := newDispatcher(t, Config{Threads: 1})
		a.Install(workers.Only(worker("o", "w")))
		b.Install(workers.Only(worker("o", "w")))
		run, _ := one(t, a, l, task("o", "w", 1))
		lose(a, 0, run)
		start := time.Now()
		for time.Since(start) < firstBan-banSlack {
			b.Crashes().HearBans(a.Crashes().Bans())
			run, _ = one(t, b, m, task("o", "w", 1))
			require.Empty(t, run)
			time.Sleep(100 * time.Millisecond) // on its way
			a.Crashes().HearBans(b.Crashes().Bans())
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(2 * banSlack)
		run, _ = one(t, b, m, task("o", "w", 1))
		require.Len(t, run, 1)
		b.Crashes().HearBans([]Ban{{Owner: "o", Worker: "w", Times: 0, LeftMs: 1e9},
			{Owner: "o", Worker: "w", Times: 9, LeftMs: 1 << 62}})
		require.LessOrEqual(t, b.Crashes().Bans()[0].LeftMs, longestBan.Milliseconds())
	})
}

// ask submits a direct event and returns the failure that it got at once, or nil.
func ask(d *Dispatcher, owner, name string) *events.Failure {
	e, c := direct(owner, name)
	d.Submit([]*lifecycle.Delivery{e})
	if len(c.replies) == 0 {
		return nil
	}
	return c.replies[0].Failure
}

// Suspects run one after the other, by owner. Events of the stream and of others are not concerned.
func TestSuspectsOfDirectEventsAreTriedOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := newDispatcher(t, Config{Threads: 1})
		for _, w := range []struct{ owner, name string }{{"a", "w"}, {"a", "v"}, {"b", "w"}, {"c", "w"}, {"other", "w"}} {
			d.Install(workers.Only(worker(w.owner, w.name)))
		}
		suspects := func() int {
			_, _, n := d.gates.crashes.holding(time.Now())
			return n
		}
		d.Crashes().Suspect([]Suspect{{Owner: "a", Worker: "w", Try: true}, {Owner: "a", Worker: "v", Try: true},
			{Owner: "b", Worker: "w", Try: true}, {Owner: "c", Worker: "w", Try: true}})
		require.Nil(t, ask(d, "a", "w"))
		require.Nil(t, ask(d, "a", "v"), "those of one owner are tried together")
		f := ask(d, "b", "w")
		require.Equal(t, events.ReasonCrash, f.Reason)
		require.Equal(t, turnFor, f.RetryAfter)
		require.Empty(t, d.Crashes().Bans(), "other processes try nobody")
		require.Nil(t, ask(d, "other", "w"))
		d.Submit(tasks("b", "w", 1))
		require.Empty(t, l.take(), "an event of the stream waits")
		time.Sleep(turnFor)
		require.Nil(t, ask(d, "b", "w"))
		require.Nil(t, ask(d, "a", "w"), "it is free")
		require.NotNil(t, ask(d, "c", "w"))
		time.Sleep(turnFor)
		require.Nil(t, ask(d, "c", "w"))
		require.Nil(t, ask(d, "b", "w"))
		require.EqualValues(t, 2, d.gates.crashes.refused)
		time.Sleep(turnFor)
		require.Nil(t, ask(d, "c", "w"))
		require.Zero(t, suspects())

		d.Crashes().Suspect([]Suspect{{Owner: "a", Worker: "w", Try: true}, {Owner: "b", Worker: "w", Try: true}})
		require.Nil(t, ask(d, "a", "w"))
		time.Sleep(suspectFor)
		require.Nil(t, ask(d, "a", "w"))
		require.Zero(t, suspects(), "those without requests are free too")
	})
}

// Only direct events are refused of a worker during whose direct events processes died. Other processes learn it.
func TestDirectEventsAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := newDispatcher(t, Config{Threads: 1})
		next, _ := newDispatcher(t, Config{Threads: 1})
		for _, d := range []*Dispatcher{d, next} {
			d.Install(workers.Only(worker("a", "w")))
			d.Install(workers.Only(worker("b", "w")))
		}
		require.Nil(t, ask(d, "a", "w"), "it waits, and is refused when it would start")
		d.Crashes().Suspect([]Suspect{{Owner: "a", Worker: "w", Times: 3, Left: 4 * time.Second}})
		next.Crashes().HearBans(d.Crashes().Bans())
		for _, d := range []*Dispatcher{d, next} {
			f := ask(d, "a", "w")
			require.Equal(t, events.ReasonCrash, f.Reason)
			require.Equal(t, 4*time.Second, f.RetryAfter)
			require.Contains(t, f.Message, "3 times lately")
			require.Nil(t, ask(d, "b", "w"))
		}
		d.Submit(tasks("a", "w", 1))
		require.Empty(t, l.take())
		var kinds []events.Kind
		for run := d.Next(0, 1); len(run) > 0; run = d.Next(0, 1) {
			kinds = append(kinds, run[0].Event.Kind)
		}
		require.ElementsMatch(t, []events.Kind{events.Fetch, events.Task}, kinds, "the direct event of b, and the task of a")
		time.Sleep(4 * time.Second)
		require.Nil(t, ask(d, "a", "w"))
		require.Nil(t, ask(next, "a", "w"))
	})
}
