package dispatch

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// batcher is a worker with a queue handler.
func batcher(owner, name string, size int, wait time.Duration) *workers.Worker {
	w := worker(owner, name)
	w.Queue = true
	w.Batch = &workers.Batch{MaxSize: size, MaxWait: new(workers.Millis(wait))}
	return w
}

func idsOf(batch []*lifecycle.Delivery) string {
	var list []string
	for _, e := range batch {
		list = append(list, e.ID)
	}
	return strings.Join(list, " ")
}

// next returns the ids of the batches that start on thread 0.
func next(t *testing.T, d *Dispatcher) (runs []*lifecycle.Attempt, batches []string) {
	t.Helper()
	for {
		some := d.Next(0, 64)
		if len(some) == 0 {
			return runs, batches
		}
		for _, a := range some {
			require.Same(t, a.Batch[0], a.Event)
			runs, batches = append(runs, a), append(batches, idsOf(a.Batch))
		}
	}
}

func TestBatchesGather(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := newDispatcher(t, Config{Threads: 1})
		go d.Run(t.Context())
		d.Install(workers.Only(batcher("o", "w", 3, 5*time.Second)))
		d.Submit(tasks("o", "w", 7))
		runs, batches := next(t, d)
		require.Equal(t, []string{"0 1 2", "3 4 5"}, batches, "full ones start at once")
		require.Equal(t, 1, d.Figures().Stats().Queued, "the last event waits")
		l.takeWoken()
		time.Sleep(4 * time.Second)
		d.Submit([]*lifecycle.Delivery{task("o", "w", 7)})
		_, batches = next(t, d)
		require.Empty(t, batches)
		time.Sleep(1100 * time.Millisecond)
		require.Equal(t, []int{0}, l.takeWoken(), "it waited long enough, counted from its first event")
		more, batches := next(t, d)
		require.Equal(t, []string{"6 7"}, batches)
		require.Equal(t, 3, d.Figures().Stats().Running, "a batch is one run")
		report(d, 0, time.Millisecond, append(runs, more...))
		s := l.take()
		require.Len(t, s, 8)
		for i, x := range s {
			require.Equal(t, fmt.Sprint(i), x.Event.ID)
			require.Equal(t, lifecycle.Ack, x.Outcome.Verdict)
			require.Equal(t, `{"success":true}`, string(x.Reply.Body))
			require.Equal(t, x.Event.ID, x.Reply.EventID)
		}
		require.Equal(t, Stats{Owners: 1, Asleep: 1}, d.Figures().Stats())
	})
}

// TestBatchWithoutWaiting: with a maxWait of 0, what comes together runs together.
func TestBatchWithoutWaiting(t *testing.T) {
	d, _ := newDispatcher(t, Config{Threads: 1})
	d.Install(workers.Only(batcher("o", "w", 10, 0)))
	d.Submit(tasks("o", "w", 4))
	_, batches := next(t, d)
	require.Equal(t, []string{"0 1 2 3"}, batches)
}

// TestEachEventOfABatch: what the handler decided about an event holds; the others end as the run does.
func TestEachEventOfABatch(t *testing.T) {
	d, l := newDispatcher(t, Config{Threads: 1, Rand: half})
	w := batcher("o", "w", 5, 0)
	w.Retries.MaxAttempts = 2
	d.Install(workers.Only(w))
	d.Submit(tasks("o", "w", 5))
	a := d.Next(0, 1)[0]
	malformed := events.Fail(events.ReasonMalformed, "no JSON")
	items := []lifecycle.Item{
		{Decision: lifecycle.Acked}, {}, {Decision: lifecycle.Again, Delay: 7 * time.Second},
		{Decision: lifecycle.Failed, Failure: malformed}, {},
	}
	d.Report(0,
		[]lifecycle.Report{{Attempt: a,
			End: &lifecycle.End{Started: true, Failure: events.Fail(events.ReasonException, "boom"), Items: items}}})
	s := l.take()
	require.Len(t, s, 5)
	out := func(i int) lifecycle.Outcome { return s[i].Outcome }
	require.Equal(t, lifecycle.Outcome{Verdict: lifecycle.Ack, Version: "1-abc"}, out(0))
	require.NotNil(t, s[0].Reply)
	for _, i := range []int{1, 4} {
		require.Equal(t, lifecycle.Retry, out(i).Verdict)
		require.Equal(t, "exception: boom", out(i).Failure.Error())
		require.Equal(t, int32(5), out(i).Batch)
		require.Nil(t, s[i].Reply)
	}
	require.Equal(t, lifecycle.Retry, out(2).Verdict)
	require.Equal(t, 7*time.Second, out(2).Delay)
	require.True(t, out(2).Asked)
	require.Zero(t, out(2).Batch)
	require.Equal(t, lifecycle.Dead, out(3).Verdict)
	require.Same(t, malformed, out(3).Failure)

	for i := range s { // the next runs
		s[i].Event.Attempt++
	}
	d.Submit([]*lifecycle.Delivery{s[1].Event, s[4].Event, s[2].Event, task("o", "w", 9)})
	runs, batches := next(t, d)
	require.ElementsMatch(t, []string{"1", "4", "2", "9"}, batches, "who failed with others runs alone, and so does a last run")
	for _, a := range runs {
		d.Report(0,
			[]lifecycle.Report{{Attempt: a, End: &lifecycle.End{Started: true, Failure: events.Fail(events.ReasonException,
				"boom")}}})
	}
	dead := map[string]lifecycle.Verdict{}
	for _, x := range l.take() {
		dead[x.Event.ID] = x.Outcome.Verdict
	}
	require.Equal(t, map[string]lifecycle.Verdict{"1": lifecycle.Dead, "2": lifecycle.Dead, "4": lifecycle.Dead,
		"9": lifecycle.Retry}, dead)
}

// TestAskedAgainTogether: events whose handler asked for another run come in batches again.
func TestAskedAgainTogether(t *testing.T) {
	d, l := newDispatcher(t, Config{Threads: 1})
	d.Install(workers.Only(batcher("o", "w", 3, 0)))
	d.Submit(tasks("o", "w", 3))
	a := d.Next(0, 1)[0]
	again := lifecycle.Item{Decision: lifecycle.Again, Delay: -1}
	d.Report(0,
		[]lifecycle.Report{{Attempt: a, End: &lifecycle.End{Started: true, Items: []lifecycle.Item{again, again, again}}}})
	var batch []*lifecycle.Delivery
	for _, s := range l.take() {
		require.Equal(t, lifecycle.Retry, s.Outcome.Verdict)
		s.Event.Attempt++
		batch = append(batch, s.Event)
	}
	d.Submit(batch)
	_, batches := next(t, d)
	require.Len(t, batches, 1)
	require.Len(t, strings.Fields(batches[0]), 3)
}

// TestPoisonFindsItself: of any number of events, in batches of any size, only those that fail each time become dead
// letters, and the others run at most twice.
func TestPoisonFindsItself(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d, l := newDispatcher(t, Config{Threads: 1, OwnerMaxQueued: 4000, Rand: half})
		w := batcher("o", "w", rapid.IntRange(1, 100).Draw(rt, "size"), 0)
		w.Retries.MaxAttempts = rapid.IntRange(2, 5).Draw(rt, "attempts")
		d.Install(workers.Only(w))
		all := tasks("o", "w", rapid.IntRange(1, 1000).Draw(rt, "n"))
		poison := map[string]bool{}
		for range rapid.IntRange(1, 3).Draw(rt, "poison") {
			poison[all[rapid.IntRange(0, len(all)-1).Draw(rt, "which")].ID] = true
		}
		ran, ended := map[string]int{}, map[string]lifecycle.Verdict{}
		for queued := all; len(queued) > 0; {
			d.Submit(queued)
			queued = nil
			for run := d.Next(0, 64); len(run) > 0; run = d.Next(0, 64) {
				for _, a := range run {
					end := &lifecycle.End{Started: true, CPU: time.Microsecond}
					for _, e := range a.Batch {
						if ran[e.ID]++; poison[e.ID] {
							end.Failure = events.Fail(events.ReasonCPU, "poison")
						}
					}
					d.Report(0, []lifecycle.Report{{Attempt: a, End: end}})
				}
			}
			for _, s := range l.take() {
				if s.Outcome.Verdict == lifecycle.Retry {
					s.Event.Attempt++
					queued = append(queued, s.Event)
					continue
				}
				ended[s.Event.ID] = s.Outcome.Verdict
			}
		}
		for _, e := range all {
			if poison[e.ID] {
				require.Equal(rt, []any{lifecycle.Dead, w.Retries.MaxAttempts}, []any{ended[e.ID], ran[e.ID]})
			} else {
				require.Equal(rt, lifecycle.Ack, ended[e.ID])
				require.LessOrEqual(rt, ran[e.ID], 2)
			}
		}
	})
}

// TestLostThreadOfABatch: one event of a batch has cost a thread. Nobody knows which, so each gets a run of its own,
// and who costs a thread then is not run again.
func TestLostThreadOfABatch(t *testing.T) {
	d, l := newDispatcher(t, Config{Threads: 1})
	d.Install(workers.Only(batcher("o", "w", 2, 0)))
	d.Submit(tasks("o", "w", 2))
	d.Report(0, []lifecycle.Report{{Attempt: d.Next(0, 1)[0], End: &lifecycle.End{Started: true, Lost: true}}})
	s := l.take()
	for _, x := range s {
		require.Equal(t, lifecycle.Retry, x.Outcome.Verdict)
		require.Equal(t, events.ReasonCrash, x.Outcome.Failure.Reason)
		x.Event.Attempt++
		d.Submit([]*lifecycle.Delivery{x.Event})
	}
	runs, batches := next(t, d)
	require.Len(t, batches, 2)
	d.Report(0, []lifecycle.Report{{Attempt: runs[0], End: &lifecycle.End{Started: true, Lost: true}}, done(runs[1], 1)})
	s = l.take()
	require.Equal(t, []lifecycle.Verdict{lifecycle.Dead, lifecycle.Ack}, []lifecycle.Verdict{s[0].Outcome.Verdict,
		s[1].Outcome.Verdict})
}

// TestInterruptedBatch: events that did not start come back together, those that did run again.
func TestInterruptedBatch(t *testing.T) {
	d, l := newDispatcher(t, Config{Threads: 1})
	d.Install(workers.Only(batcher("o", "w", 3, 0)))
	d.Submit(tasks("o", "w", 3))
	d.Report(0, []lifecycle.Report{notStarted(d.Next(0, 1)[0])})
	require.Equal(t, 3, d.Figures().Stats().Queued)
	require.Empty(t, l.take())
	runs, batches := next(t, d)
	require.Equal(t, []string{"0 1 2"}, batches)
	acked := []lifecycle.Item{{}, {Decision: lifecycle.Acked}, {}}
	d.Report(0,
		[]lifecycle.Report{{Attempt: runs[0], End: &lifecycle.End{Interrupted: true, Started: true, Items: acked}}})
	var verdicts []lifecycle.Verdict
	for _, s := range l.take() {
		verdicts = append(verdicts, s.Outcome.Verdict)
	}
	require.Equal(t, []lifecycle.Verdict{lifecycle.Retry, lifecycle.Ack, lifecycle.Retry}, verdicts)
}

// A thread did not start a batch, and the process drains meanwhile: all its events go back to the stream, in order.
func TestBatchThatDidNotBeginGoesBackInADrain(t *testing.T) {
	d, l := newDispatcher(t, Config{Threads: 1})
	d.Install(workers.Only(batcher("o", "w", 3, time.Minute)))
	batch := tasks("o", "w", 3)
	d.Submit(batch)
	run := d.Next(0, 1)
	require.Len(t, run, 1)
	d.Drain()
	d.Report(0, []lifecycle.Report{notStarted(run[0])})
	var want []lifecycle.Settlement
	for _, e := range batch {
		want = append(want, lifecycle.Settlement{Event: e, Order: lifecycle.Return})
	}
	require.Equal(t, want, l.take())
	require.Equal(t, Stats{Owners: 1, Draining: true}, d.Figures().Stats())
}

func TestDrainWhileGathering(t *testing.T) {
	d, l := newDispatcher(t, Config{Threads: 1})
	d.Install(workers.Only(batcher("o", "w", 3, time.Minute)))
	d.Submit(tasks("o", "w", 5)) // a batch in the queue, and two events that wait for others
	d.Drain()
	s := l.take()
	require.Len(t, s, 5)
	for _, x := range s {
		require.Equal(t, lifecycle.Return, x.Order)
	}
	require.Equal(t, Stats{Owners: 1, Draining: true}, d.Figures().Stats())
}

func TestDeadlineWhileGathering(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := newDispatcher(t, Config{Threads: 1})
		go d.Run(t.Context())
		d.Install(workers.Only(batcher("o", "w", 10, 10*time.Second)))
		batch := tasks("o", "w", 3)
		batch[0].Deadline = time.Now().Add(2 * time.Second)
		d.Submit(batch)
		time.Sleep(3 * time.Second)
		s := l.take()
		require.Len(t, s, 1)
		require.Equal(t, "0", s[0].Event.ID)
		require.Equal(t, events.ReasonExpired, s[0].Outcome.Failure.Reason)
		time.Sleep(8 * time.Second)
		_, batches := next(t, d)
		require.Equal(t, []string{"1 2"}, batches)
	})
}

// TestSplitWhileGathering: events go to the versions that have them when they start; each batch is of one version.
func TestSplitWhileGathering(t *testing.T) {
	d, _ := newDispatcher(t, Config{Threads: 1})
	in := versions(2)
	for _, w := range in.Versions {
		w.Queue, w.Batch = true, &workers.Batch{MaxSize: 50, MaxWait: new(workers.Millis(0))}
	}
	in.Versions[1].Batch.MaxSize = 7
	only := in
	only.Deployment = workers.Deployment{Number: 1,
		Split: []workers.Share{{Version: in.Versions[0].Version, Percent: 100}}}
	d.Install(only)
	d.Submit(tasks("o", "w", 100))
	in.Deployment = workers.Deployment{Number: 2, Split: []workers.Share{{Version: in.Versions[0].Version, Percent: 50},
		{Version: in.Versions[1].Version, Percent: 50}}}
	d.Install(in)
	runs, _ := next(t, d)
	seen := map[string]bool{}
	for _, a := range runs {
		for _, e := range a.Batch {
			require.Same(t, in.Of(&e.Event), a.Worker)
			require.False(t, seen[e.ID])
			seen[e.ID] = true
		}
		require.LessOrEqual(t, len(a.Batch), a.Worker.Batch.MaxSize)
	}
	require.Len(t, seen, 100)
}

// TestBatchesAreBounded: a batch has at most so many bytes, and so many events as the process may give to it.
func TestBatchesAreBounded(t *testing.T) {
	d, l := newDispatcher(t, Config{Threads: 1, MaxBatch: 8, OwnerMaxQueued: 40})
	d.Install(workers.Only(batcher("o", "w", 100, 0)))
	batch := tasks("o", "w", 9)
	batch[1].Body = make([]byte, maxBatchBytes-10)
	batch[2].Header = events.Header{"A": {strings.Repeat("x", 100)}}
	batch[3].Body = make([]byte, 2*maxBatchBytes)
	d.Submit(batch)
	_, batches := next(t, d)
	require.Equal(t, []string{"0 1", "2", "3", "4 5 6 7 8"}, batches)

	d.Submit(tasks("o", "w", 60))
	_, batches = next(t, d)
	require.Len(t, strings.Fields(batches[0]), 8)
	parked := 0
	for _, s := range l.take() {
		if s.Order == lifecycle.Park {
			parked++
		}
	}
	require.Positive(t, parked, "events of batches that run count in their owner's room")
	require.LessOrEqual(t, d.Figures().BusyOwners()[0].Queued, 40)
}

// TestManyBatchesGather: the events that gather take at most half of their owner's room, however many workers it has.
func TestManyBatchesGather(t *testing.T) {
	d, _ := newDispatcher(t, Config{Threads: 1, OwnerMaxQueued: 40})
	var all []*lifecycle.Delivery
	for i := range 30 {
		name := fmt.Sprint("w", i)
		d.Install(workers.Only(batcher("o", name, 100, time.Minute)))
		all = append(all, task("o", name, i))
	}
	d.Submit(all)
	_, batches := next(t, d)
	require.Len(t, batches, 10)
	require.Equal(t, 20, d.Figures().BusyOwners()[0].Queued)
}

// A batch that waits to start is divided when another version runs its events, one that takes none in batches. There is
// no room for them: they need a lease.
func TestBatchOfAVersionThatHasGoneWaitsForALease(t *testing.T) {
	d, _, k := withLeases(t)
	d.Install(workers.Only(batcher("o", "w", 5, 0)))
	d.Submit(tasks("o", "w", 5))
	d.Install(limitedTo(1, "o", "w"))
	require.Empty(t, d.Next(0, 1))
	require.Empty(t, d.Next(0, 1))
	require.Contains(t, k.take(), "want o/w")
	require.True(t, k.Grant("o", "w", 1))
	for i := range 5 {
		list, names := starts(d, 0)
		require.Equal(t, []string{fmt.Sprint("w", i)}, names)
		ends(d, 0, list...)
	}
}
