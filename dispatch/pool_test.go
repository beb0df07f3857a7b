package dispatch

import (
	"fmt"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// pooled returns a Dispatcher of which owners are in the pools that the map says, each with a worker w.
func pooled(t testing.TB, cfg Config, of map[string]int) (*Dispatcher, *ledger) {
	cfg.PoolOf = func(owner string) int { return of[owner] }
	d, l := newDispatcher(t, cfg)
	for owner := range of {
		d.Install(workers.Only(worker(owner, "w")))
	}
	return d, l
}

func warmOf(d *Dispatcher, owner string) threadSet { return d.owners[owner].routes["w"].base.warm }

func interrupted(a *lifecycle.Attempt) lifecycle.Report {
	return lifecycle.Report{Attempt: a, End: &lifecycle.End{Started: true, Interrupted: true}}
}

func TestThreadNumbers(t *testing.T) {
	t.Parallel()
	for _, k := range [][3]int{{0, 0, 0}, {0, 63, 63}, {1, 0, 64}, {3, 5, 197}} {
		require.Equal(t, k[2], ThreadOf(k[0], k[1]))
		pool, index := PoolOfThread(k[2])
		require.Equal(t, k[:2], []int{pool, index})
	}
	pool, index := PoolOfThread(-1)
	require.Equal(t, []int{0, -1}, []int{pool, index}, "a thread of none")
}

// The events of an owner start on threads of its pool and on no others. One of these is woken for them though none has
// called Next: a cell is started by that.
func TestOwnersRunInTheirPools(t *testing.T) {
	t.Parallel()
	d, l := pooled(t, Config{Threads: 2}, map[string]int{"own": 0, "cell": 3})
	require.Len(t, d.pools.all, 4)
	d.Submit(append(tasks("own", "w", 1), tasks("cell", "w", 1)...))
	require.Equal(t, []int{ThreadOf(3, 0)}, l.takeWoken(), "those of pool 0 do not sleep yet")
	require.Empty(t, d.Next(ThreadOf(1, 0), 8), "a pool without owners")
	batch := d.Next(ThreadOf(3, 0), 8)
	require.Equal(t, "cell", batch[0].Event.Owner)
	require.Empty(t, d.Next(ThreadOf(3, 1), 8))
	report(d, ThreadOf(3, 0), time.Millisecond, batch)
	require.Equal(t, threadSet(1), warmOf(d, "cell"))
	batch = d.Next(1, 8)
	require.Equal(t, "own", batch[0].Event.Owner)
	require.Empty(t, d.Next(0, 8))

	// Work of several pools in one call wakes threads of each.
	report(d, 1, time.Millisecond, batch)
	require.Empty(t, d.Next(1, 8))
	require.Empty(t, d.Next(ThreadOf(3, 0), 8))
	l.takeWoken()
	d.Submit(append(tasks("own", "w", 1), tasks("cell", "w", 1)...))
	require.ElementsMatch(t, []int{1, ThreadOf(3, 0)}, l.takeWoken())
	require.Equal(t, 3, int(d.metrics.wakes))
}

// What waits goes with its owner, what runs ends where it is, and neither contexts nor credit of another pool count.
func TestOwnerMoves(t *testing.T) {
	t.Parallel()
	of := map[string]int{"o": 0, "p": 1}
	d, l := pooled(t, Config{Threads: 2}, of)
	learn(t, d, 0, "o", "w", time.Millisecond)
	d.Submit(tasks("o", "w", 4))
	first := d.Next(0, 1)
	require.Len(t, first, 1)
	engage(d)
	away := d.Next(1, 1)
	require.Len(t, away, 1)
	require.Equal(t, threadSet(0b11), warmOf(d, "o"))
	l.takeWoken()

	of["o"] = 1
	d.PolicySet("o")
	require.Equal(t, []int{ThreadOf(1, 0), ThreadOf(1, 1)}, l.takeWoken())
	require.Zero(t, warmOf(d, "o"))
	require.Empty(t, d.Next(0, 8))
	engage(d)
	second := d.Next(ThreadOf(1, 1), 1)
	require.Len(t, second, 1)
	require.Equal(t, threadSet(0b10), warmOf(d, "o"))
	d.Away(away[0], true)
	require.Equal(t, threadSet(0b10), warmOf(d, "o"), "its context was one of pool 0")
	report(d, 0, time.Millisecond, first)
	d.Away(away[0], false)
	d.Report(1, []lifecycle.Report{{Attempt: away[0], End: &lifecycle.End{Started: true,
		Failure: events.Fail(events.ReasonException, "x")}}})
	closed(d, 1, worker("o", "w"))
	require.Equal(t, threadSet(0b10), warmOf(d, "o"), "so were these")
	closed(d, ThreadOf(1, 1), worker("o", "w"))
	require.Zero(t, warmOf(d, "o"))
	d.Report(ThreadOf(1, 1), []lifecycle.Report{notStarted(second[0])})
	require.Equal(t, 2, d.owners["o"].queue.n)

	d.PolicySet("nobody")
	of["o"] = -1
	d.PolicySet("o")
	require.Zero(t, d.owners["o"].pool.number, "no pool has a number below 0")
	require.Empty(t, d.Figures().Pools()[0].Queued)
}

// An owner that comes from a pool with many rounds has its turns at once.
func TestRoundsAreOfAPool(t *testing.T) {
	t.Parallel()
	of := map[string]int{"o": 0, "p": 1}
	d, _ := pooled(t, Config{Threads: 1, OwnerMaxQueued: 1000}, of)
	learn(t, d, 0, "o", "w", 100*time.Millisecond)
	for range 50 {
		d.Submit(tasks("o", "w", 1))
		report(d, 0, 100*time.Millisecond, d.Next(0, 1))
	}
	require.Greater(t, own(d).queues[light].round, int64(1000))
	d.Submit(append(tasks("o", "w", 500), tasks("p", "w", 500)...))
	of["o"] = 1
	d.PolicySet("o")
	d.owners["o"].credit, d.owners["p"].credit = 0, 0
	got := map[string]int{}
	for range 200 {
		batch := d.Next(ThreadOf(1, 0), 1)
		got[batch[0].Event.Owner]++
		report(d, ThreadOf(1, 0), time.Millisecond, batch)
	}
	require.InDelta(t, got["p"], got["o"], 4)
}

// A heavy owner has the background threads of its pool, and stays heavy in another one.
func TestHeavyOwnerOfAPool(t *testing.T) {
	t.Parallel()
	of := map[string]int{"noisy": 2, "quiet": 0}
	d, l := pooled(t, Config{Threads: 2, Background: 2}, of)
	d.shares.start = time.Now().Add(time.Hour)
	light0, heavy2 := ThreadOf(2, 0), ThreadOf(2, 2)
	d.Submit(append(tasks("quiet", "w", 1), tasks("noisy", "w", 1)...))
	report(d, 0, time.Millisecond, d.Next(0, 1))
	report(d, light0, time.Millisecond, d.Next(light0, 1))
	require.Empty(t, d.Next(light0, 1))
	d.Submit(tasks("noisy", "w", 9))
	require.Subset(t, []int{light0, light0 + 1}, l.takeWoken())
	d.Charge("noisy", 2*time.Second)
	require.Equal(t, heavy, d.owners["noisy"].class, "who is heavy is decided over all pools")
	require.Equal(t, []int{heavy2, heavy2 + 1}, l.takeWoken())
	require.Empty(t, d.Next(light0, 1), "kept for light owners")
	require.Len(t, d.Next(heavy2, 1), 1)
	of["noisy"] = 0
	d.PolicySet("noisy")
	require.Equal(t, heavy, d.owners["noisy"].class)
	require.Empty(t, d.Next(0, 1))
	require.Len(t, d.Next(3, 1), 1)
}

// All threads of a pool that ended sleep, and are woken for what waits.
func TestPoolEnds(t *testing.T) {
	t.Parallel()
	of := map[string]int{"o": 1, "other": 2}
	d, l := pooled(t, Config{Threads: 2}, of)
	one, two := ThreadOf(1, 0), ThreadOf(1, 1)
	d.Submit(append(tasks("o", "w", 3), tasks("other", "w", 1)...))
	report(d, ThreadOf(2, 0), time.Millisecond, d.Next(ThreadOf(2, 0), 1))
	batch := d.Next(one, 1)
	engage(d)
	batch = append(batch, d.Next(two, 1)...)
	require.Len(t, batch, 2)
	l.takeWoken()
	l.take()
	d.Report(one, []lifecycle.Report{interrupted(batch[0]), notStarted(batch[1])})
	require.Len(t, l.take(), 1, "the settler submits again what began")
	require.Zero(t, warmOf(d, "o")&0b01)
	d.owners["o"].routes["w"].base.warm = 0b11 // of earlier runs
	d.PoolEnded(1)
	require.Zero(t, warmOf(d, "o"))
	require.NotZero(t, warmOf(d, "other"))
	require.Equal(t, []int{one, two}, l.takeWoken(), "two events wait")
	require.Equal(t, PoolStats{Pool: 1, Owners: 1, Queued: 2, Asleep: 0}, d.Figures().Pools()[0])
	d.PoolEnded(1)
	require.Equal(t, []int{one, two}, l.takeWoken(), "it did not start")
	require.Len(t, d.Next(one, 1), 1)
	engage(d)
	require.Len(t, d.Next(two, 1), 1)

	d.PoolEnded(1) // its attempts were not reported: this is wrong, and ends nothing else
	require.Empty(t, d.Next(one, 1))
	for _, a := range batch {
		d.Report(one, []lifecycle.Report{interrupted(a)}) // it was reported
	}
	d.PoolEnded(0)
	d.PoolEnded(-1)
	d.PoolEnded(99)
	require.Len(t, d.pools.all, 3)
	require.Zero(t, d.Figures().Stats().Asleep)
}

// An attempt that is reported after its pool ended is an error of the caller, and not one that ends the process.
func TestPoolEndsTooEarly(t *testing.T) {
	t.Parallel()
	d, l := pooled(t, Config{Threads: 1, Slots: 1, OwnerMaxRunning: 2}, map[string]int{"o": 1})
	d.Submit(tasks("o", "w", 2))
	batch := d.Next(ThreadOf(1, 0), 1)
	d.PoolEnded(1)
	require.Empty(t, d.Next(ThreadOf(1, 0), 1), "its slot is taken")
	require.False(t, d.Running(ThreadOf(1, 0), batch[0], time.Millisecond))
	d.Report(ThreadOf(1, 0), []lifecycle.Report{interrupted(batch[0])})
	d.PoolEnded(1)
	require.False(t, d.Running(ThreadOf(1, 0), batch[0], time.Second), "of a thread that has gone")
	require.Len(t, d.Next(ThreadOf(1, 0), 1), 1)
	require.Len(t, l.take(), 1)
}

// An owner without workers, whose last attempt comes back, is known in its pool again.
func TestForgottenOwnerOfAPool(t *testing.T) {
	t.Parallel()
	d, l := pooled(t, Config{Threads: 1}, map[string]int{"o": 1, "p": 1})
	thread := ThreadOf(1, 0)
	d.Submit(tasks("o", "w", 1))
	batch := d.Next(thread, 1)
	d.Remove("o", "w")
	d.Report(thread, []lifecycle.Report{notStarted(batch[0])})
	require.Equal(t, []PoolStats{{Pool: 1, Owners: 2, Queued: 1}}, d.Figures().Pools())
	require.Empty(t, d.Next(thread, 1))
	require.Equal(t, events.ReasonNoWorker, l.take()[0].Outcome.Failure.Reason)
	require.Equal(t, []PoolStats{{Pool: 1, Owners: 1, Asleep: 1}}, d.Figures().Pools())
	d.Remove("p", "w")
	require.Empty(t, d.Figures().Pools())
}

// Events that go before all others wait for threads of their pool, too, and move with their owner.
func TestUrgentEventsOfAPool(t *testing.T) {
	t.Parallel()
	of := map[string]int{"o": 1, "p": 0}
	d, l := pooled(t, Config{Threads: 1}, of)
	cell := ThreadOf(1, 0)
	d.Submit(tasks("o", "w", 1))
	root := d.Next(cell, 1)[0]
	d.Submit([]*lifecycle.Delivery{crashed("p", 1, aloneAfter)})
	require.Empty(t, d.Next(0, 1))
	require.Equal(t, clearing, d.gates.crashes.phase)
	called, _ := calling(t, d, root, "w")
	require.EqualValues(t, 1, d.owners["o"].urgent)
	require.Empty(t, d.Next(0, 1), "a thread of another pool takes no call")
	of["o"] = 2
	d.PolicySet("o")
	require.Empty(t, d.Next(cell, 1))
	require.Contains(t, l.takeWoken(), ThreadOf(2, 0))
	batch := d.Next(ThreadOf(2, 0), 1)
	require.Len(t, batch, 1)
	require.Same(t, called, batch[0].Event)
	require.Zero(t, d.gates.crashes.urgent)
	d.Report(ThreadOf(2, 0), []lifecycle.Report{notStarted(batch[0])})
	require.EqualValues(t, 1, d.owners["o"].urgent, "it goes back")
	over(d, ThreadOf(2, 0), d.Next(ThreadOf(2, 0), 1)[0], root)
	over(d, cell, root, nil)

	require.Len(t, watchAll(d, l), 1)
	require.Equal(t, alone, d.gates.crashes.phase)
	require.Empty(t, d.Next(cell, 1))
	require.Equal(t, PoolStats{Pool: 2, Owners: 1}.Queued, d.Figures().Pools()[0].Queued)
	of["p"] = 1
	d.PolicySet("p")
	require.Equal(t, PoolStats{Pool: 1, Owners: 1, Queued: 1}, d.Figures().Pools()[0])
	l.take()
	d.Remove("p", "w") // its event is watched, and fails when it would start
	require.Contains(t, d.owners, "p")
	require.Empty(t, d.Next(0, 1))
	require.Empty(t, d.Next(cell, 1))
	require.Equal(t, events.ReasonNoWorker, l.take()[0].Outcome.Failure.Reason)
	require.NotContains(t, d.owners, "p")
	require.True(t, d.gates.crashes.idle())
}

// A run yields to events of its own pool only, also when its owner has left that.
func TestWhoYieldsInAPool(t *testing.T) {
	t.Parallel()
	of := map[string]int{"long": 1, "quiet": 1, "far": 2}
	d, _ := pooled(t, Config{Threads: 1}, of)
	thread := ThreadOf(1, 0)
	d.Submit(tasks("long", "w", 1))
	batch := d.Next(thread, 1)
	d.Submit(tasks("far", "w", 1))
	require.False(t, d.Running(thread, batch[0], time.Millisecond))
	d.Submit(tasks("quiet", "w", 1))
	require.True(t, d.Running(thread, batch[0], 2*time.Millisecond))
	of["long"] = 2
	d.Submit(tasks("long", "w", 1))
	d.PolicySet("long")
	require.True(t, d.Running(thread, batch[0], 3*time.Millisecond), "its own events wait elsewhere")
}

// A thread that closed a context is not waited for, in its pool.
func TestClosedContextIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, l := pooled(t, Config{Threads: 2}, map[string]int{"o": 1, "p": 1})
		for _, o := range []string{"o", "p"} {
			d.Submit(tasks(o, "w", 1))
			report(d, ThreadOf(1, 0), 100*time.Microsecond, d.Next(ThreadOf(1, 0), 1))
		}
		for index := range 2 {
			require.Empty(t, d.Next(ThreadOf(1, index), 1))
		}
		d.Submit(tasks("p", "w", 1))
		require.Len(t, d.Next(ThreadOf(1, 0), 1), 1)
		l.takeWoken()
		d.Submit(tasks("o", "w", 1))
		require.Empty(t, l.takeWoken(), "it is left to the thread that works")
		closed(d, ThreadOf(1, 0), worker("o", "w"))
		require.Equal(t, []int{ThreadOf(1, 1)}, l.takeWoken())
	})
}

// Contexts that are not needed are closed on threads of their pool.
func TestContextsOfAPoolAreClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, l := pooled(t, Config{Threads: 2}, map[string]int{"o": 1})
		go d.Run(t.Context())
		d.Submit(tasks("o", "w", 2))
		for index := range 2 {
			time.Sleep(2 * overdue)
			report(d, ThreadOf(1, index), 100*time.Microsecond, d.Next(ThreadOf(1, index), 1))
		}
		time.Sleep(time.Hour)
		all := l.takeClosing()
		require.NotEmpty(t, all)
		require.Equal(t, ThreadOf(1, 1), all[0].thread)
	})
}

// Threads of all pools together never rest less than no time, nor more than those of the process would.
func TestSleptTimeOfPools(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, _ := pooled(t, Config{Threads: 2}, map[string]int{"o": 1, "p": 2})
		slept := func() time.Duration {
			before := d.Figures().Slept()
			time.Sleep(time.Second)
			return d.Figures().Slept() - before
		}
		require.Zero(t, slept(), "both threads of pool 0 are awake")
		for index := range 2 {
			require.Empty(t, d.Next(index, 1))
		}
		require.Equal(t, 2*time.Second, slept())
		d.Next(ThreadOf(1, 0), 0)
		require.Equal(t, time.Second, slept())
		for _, thread := range []int{ThreadOf(1, 1), ThreadOf(2, 0), ThreadOf(2, 1)} {
			d.Next(thread, 0)
		}
		require.Zero(t, slept(), "four work, and there are processors for two")
		d.PoolEnded(1)
		require.Zero(t, slept())
		d.PoolEnded(2)
		require.Equal(t, 2*time.Second, slept())
	})
}

// Owners of a pool share its threads as those of pool 0 do.
func TestFairnessInAPool(t *testing.T) {
	t.Parallel()
	d, _ := pooled(t, Config{Threads: 1, OwnerMaxQueued: 100_000}, map[string]int{"short": 1, "long": 1, "far": 2})
	cost := map[string]time.Duration{"short": 50 * time.Microsecond, "long": 5 * time.Millisecond}
	used := map[string]time.Duration{}
	d.Submit(append(append(tasks("short", "w", 20_000), tasks("long", "w", 200)...), tasks("far", "w", 1000)...))
	thread := ThreadOf(1, 0)
	for used["short"]+used["long"] < 1500*time.Millisecond {
		batch := d.Next(thread, 64)
		require.NotEmpty(t, batch)
		for _, a := range batch {
			used[a.Event.Owner] += cost[a.Event.Owner]
			report(d, thread, cost[a.Event.Owner], []*lifecycle.Attempt{a})
		}
	}
	require.InEpsilon(t, used["short"], used["long"], 0.05)
	require.Zero(t, used["far"])
}

// An event costs the same with any number of pools, and a pool whose process has ended takes a few hundred bytes. The
// test counts pools that are looked at rather than time.
func TestManyPools(t *testing.T) {
	t.Parallel()
	const many = 500
	of := map[string]int{"o": 1}
	d, _ := pooled(t, Config{Threads: 32, Background: 32}, of)
	for i := range many {
		d.Next(ThreadOf(2+i, 0), 1) // a process was there
		d.PoolEnded(2 + i)
		require.Nil(t, d.pools.all[2+i].idle.threads)
	}
	require.LessOrEqual(t, reflect.TypeFor[pool]().Size(), uintptr(400))
	for i := range many {
		name := fmt.Sprint("owner", i)
		of[name] = 2 + i
		d.Install(workers.Only(worker(name, "w")))
		d.Submit(tasks(name, "w", 1)) // it could start, if its process were there
	}
	for _, p := range d.pools.all[2:] {
		p.queues[light].looks = 0
	}
	for range 10 {
		d.Submit(tasks("o", "w", 1))
		report(d, ThreadOf(1, 0), time.Millisecond, d.Next(ThreadOf(1, 0), 1))
	}
	for _, p := range d.pools.all[2:] {
		require.Zero(t, p.queues[light].looks)
	}
	require.Len(t, d.Figures().Pools(), many+1)
}
