package dispatch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

func TestOwnerMaxRunning(t *testing.T) {
	d, l := newDispatcher(t, Config{Threads: 2, OwnerMaxRunning: 3})
	d.Install(workers.Only(worker("noisy", "w")))
	d.Install(workers.Only(worker("quiet", "w")))
	learn(t, d, 0, "noisy", "w", time.Microsecond)
	d.Submit(tasks("noisy", "w", 10))
	first := d.Next(0, 64)
	require.Len(t, first, 3)
	require.Nil(t, d.Next(1, 64))
	d.Submit(tasks("quiet", "w", 1))
	require.Contains(t, l.takeWoken(), 1)
	require.Equal(t, "quiet", d.Next(1, 64)[0].Event.Owner, "others go on")
	require.Nil(t, d.Next(1, 64))
	engage(d)
	report(d, 0, time.Microsecond, first[:1])
	require.Equal(t, []int{1}, l.takeWoken(), "a free slot of the owner wakes a sleeping thread")
	require.Len(t, d.Next(1, 64), 1)
}

func TestSlots(t *testing.T) {
	d, _ := newDispatcher(t, Config{Threads: 1, Slots: 2, OwnerMaxRunning: 10})
	d.Install(workers.Only(worker("o", "w")))
	learn(t, d, 0, "o", "w", time.Microsecond)
	d.Submit(tasks("o", "w", 5))
	batch := d.Next(0, 64)
	require.Len(t, batch, 2)
	require.Nil(t, d.Next(0, 64))
	require.Zero(t, d.Figures().Stats().Asleep, "full, not asleep")
	report(d, 0, time.Microsecond, batch)
	require.Len(t, d.Next(0, 1), 1)
}

// The time counts for which a thread sleeps, up to its next Next, and that of one that still sleeps.
func TestSleptTimeIsCounted(t *testing.T) {
	now := time.Now()
	x := newPools(Config{Threads: 2, Background: 1})
	n, rest := &x.pool(0).idle, &x.rest
	at := func(seconds int) time.Time { return now.Add(time.Duration(seconds) * time.Second) }
	n.sleep(0, rest, at(0))
	n.sleep(2, rest, at(1))
	require.Equal(t, 3*time.Second, rest.until(at(2)))
	n.rouse(0b001)
	n.up(0, rest, at(5))
	n.up(1, rest, at(6)) // it did not sleep
	require.Equal(t, 5*time.Second+8*time.Second, rest.until(at(9)))

	d, _ := newDispatcher(t, Config{Threads: 1})
	require.Zero(t, d.Figures().Slept(), "a thread that has not called Next does not sleep")
	require.Nil(t, d.Next(0, 1))
	require.Eventually(t, func() bool { return d.Figures().Slept() > time.Millisecond }, time.Minute, time.Millisecond)
}

func TestBatches(t *testing.T) {
	d, _ := newDispatcher(t, Config{Threads: 1})
	for _, name := range []string{"short", "shorter", "long", "unknown"} {
		d.Install(workers.Only(worker("o", name)))
		d.Install(workers.Only(worker("p", name)))
	}
	learn(t, d, 0, "o", "short", 50*time.Microsecond)
	learn(t, d, 0, "o", "shorter", 10*time.Microsecond)
	learn(t, d, 0, "o", "long", 30*time.Millisecond)
	finish := func(batch []*lifecycle.Attempt) (names []string) {
		for _, a := range batch {
			names = append(names, a.Worker.Name)
		}
		return names
	}
	d.Submit(tasks("o", "short", 30))
	// Credit is what the learning left of it, so the first batch may be shorter.
	for n := 30; n > 0; {
		batch := d.Next(0, 64)
		require.NotEmpty(t, batch)
		require.LessOrEqual(t, len(batch), 10, "500 µs of work")
		n -= len(batch)
		report(d, 0, 50*time.Microsecond, batch)
	}
	d.Submit(tasks("o", "long", 2))
	for range 2 {
		batch := d.Next(0, 64)
		require.Len(t, batch, 1, "long ones come alone")
		report(d, 0, 30*time.Millisecond, batch)
	}
	d.Submit([]*lifecycle.Delivery{task("p", "unknown", 0), task("p", "unknown", 1)})
	for range 2 {
		batch := d.Next(0, 64)
		require.Len(t, batch, 1, "unknown ones come alone")
		d.Report(0, []lifecycle.Report{{Attempt: batch[0], End: &lifecycle.End{Interrupted: true, Started: true}}})
		d.owners["p"].routes["unknown"].base.coldCost.known = false
	}
	d.owners["o"].credit = quantum
	d.Submit([]*lifecycle.Delivery{task("o", "short", 0), task("o", "shorter", 1), task("o", "short", 2),
		task("o", "shorter", 3)})
	require.Equal(t, []string{"short", "short", "shorter", "shorter"}, finish(d.Next(0, 64)),
		"one isolate after the other")
}

// What it costs to make a context says nothing about the runs that find one.
func TestColdRunsDoNotCountForWarmOnes(t *testing.T) {
	d, _ := newDispatcher(t, Config{Threads: 1})
	d.Install(workers.Only(worker("o", "w")))
	d.Submit(tasks("o", "w", 60))
	next := func(end lifecycle.End) int {
		d.owners["o"].credit = quantum
		batch := d.Next(0, 64)
		var reports []lifecycle.Report
		for _, a := range batch {
			reports = append(reports, lifecycle.Report{Attempt: a, End: &end})
		}
		d.Report(0, reports)
		return len(batch)
	}
	cold := lifecycle.End{Started: true, CPU: 5 * time.Millisecond}
	warm := lifecycle.End{Started: true, CPU: 50 * time.Microsecond, Warm: true}
	failed := lifecycle.End{Started: true, CPU: 50 * time.Microsecond, Warm: true,
		Failure: events.Fail(events.ReasonException, "x")}
	require.Equal(t, 1, next(cold), "unknown")
	require.Equal(t, 1, next(warm), "as if it made a context")
	require.Equal(t, 10, next(warm), "500 µs of work")
	require.Equal(t, 10, next(failed), "it takes its context with it")
	require.Equal(t, 1, next(cold))
	require.Equal(t, 10, next(warm))
}

// An owner gets 1 ms in its turn, and a thread half of that at once.
func TestTurns(t *testing.T) {
	d, _ := newDispatcher(t, Config{Threads: 1})
	for _, o := range []string{"o", "p"} {
		d.Install(workers.Only(worker(o, "w")))
		learn(t, d, 0, o, "w", 50*time.Microsecond)
	}
	for _, o := range []string{"o", "p"} {
		d.owners[o].credit = quantum
		d.Submit(tasks(o, "w", 100))
	}
	var turns []string
	for range 8 {
		batch := d.Next(0, 64)
		require.Len(t, batch, 10)
		turns = append(turns, batch[0].Event.Owner)
		report(d, 0, 50*time.Microsecond, batch)
	}
	require.Equal(t, []string{"o", "o", "p", "p", "o", "o", "p", "p"}, turns)
}

func TestWakesTheWarmThread(t *testing.T) {
	d, l := newDispatcher(t, Config{Threads: 4})
	d.Install(workers.Only(worker("o", "w")))
	d.Install(workers.Only(worker("p", "w")))
	learn(t, d, 2, "o", "w", 10*time.Microsecond)
	learn(t, d, 3, "p", "w", 10*time.Microsecond)
	for thread := range 4 {
		require.Nil(t, d.Next(thread, 64))
	}
	d.mu.Lock()
	own(d).mean = 10 * time.Microsecond
	d.mu.Unlock()
	l.takeWoken()
	d.Submit(tasks("o", "w", 3))
	require.Equal(t, []int{2}, l.takeWoken(), "30 µs of work are worth one thread, and 2 is warm")
	d.Submit(tasks("o", "w", 3))
	require.Empty(t, l.takeWoken(), "it is coming")
	require.Nil(t, d.Next(1, 64), "it is left to the warm one")
	require.Len(t, d.Next(2, 64), 6)
	d.Submit(tasks("p", "w", 1))
	require.Equal(t, []int{3}, l.takeWoken())
	d.Submit(tasks("o", "w", 1))
	require.Len(t, d.Next(2, 0), 0, "busy")
	require.Len(t, d.Next(3, 64), 2)
}

func TestBusyThreadIsNotCountedOn(t *testing.T) {
	d, l := newDispatcher(t, Config{Threads: 2})
	d.Install(workers.Only(worker("o", "w")))
	require.Nil(t, d.Next(0, 64))
	require.Nil(t, d.Next(1, 64))
	d.Submit(tasks("o", "w", 1))
	require.Equal(t, []int{0}, l.takeWoken())
	require.Nil(t, d.Next(0, 0), "it came, but has work of its own")
	require.Equal(t, []int{1}, l.takeWoken(), "so another is woken")
}
