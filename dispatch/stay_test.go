package dispatch

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// Many owners that have events again and again each stay with one thread, and both threads have some of them.
func TestOwnersStayWithTheirThreads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const owners, rounds = 100, 50
		d, l := newDispatcher(t, Config{Threads: 2})
		for i := range owners {
			d.Install(workers.Only(worker(fmt.Sprint(i), "w")))
		}
		var ranOn [2]map[string]int
		var held [2][]*lifecycle.Attempt
		for thread := range ranOn {
			ranOn[thread] = map[string]int{}
		}
		for range rounds {
			for i := range owners {
				d.Submit(tasks(fmt.Sprint(i), "w", 2))
			}
			for busy := true; busy; {
				busy = false
				for thread := range held {
					cpu := 15 * time.Microsecond
					for _, a := range held[thread] {
						if ranOn[thread][a.Worker.Owner]++; ranOn[thread][a.Worker.Owner] == 1 {
							cpu = 2 * time.Millisecond // it makes a context
						}
						time.Sleep(cpu / 2)
						report(d, thread, cpu, []*lifecycle.Attempt{a})
					}
					held[thread] = d.Next(thread, 64)
					busy = busy || len(held[thread]) > 0
				}
			}
			l.take()
			l.takeWoken()
		}
		require.Zero(t, d.Figures().Stats().Queued)
		both := 0
		for o := range ranOn[0] {
			if ranOn[1][o] > 0 {
				both++
			}
		}
		require.LessOrEqual(t, both, owners/20, "owners that ran on both threads")
		for thread := range ranOn {
			require.Greater(t, len(ranOn[thread]), owners/4, "owners of thread %d", thread)
		}
	})
}

// Events are left to the thread that is warm for them only if it takes them soon, and if they are few.
func TestWhatIsLeftToThreads(t *testing.T) {
	for _, k := range []struct {
		what string
		left bool
		make func(d *Dispatcher) // thread 0 is warm for o and p
	}{
		{"it has just called Next", true, func(d *Dispatcher) { d.Next(0, 1) }},
		{"it works for a short time", true, func(d *Dispatcher) {
			d.Submit(tasks("p", "short", 1))
			d.Next(0, 1)
		}},
		{"it works for long", false, func(d *Dispatcher) {
			d.Submit(tasks("p", "long", 1))
			d.Next(0, 1)
		}},
		{"it turned out to work for long", false, func(d *Dispatcher) {
			d.Submit(tasks("p", "short", 1))
			d.Running(0, d.Next(0, 1)[0], time.Millisecond)
		}},
		{"it is late", true, func(*Dispatcher) { time.Sleep(overdue / 2) }},
		{"it is too late", false, func(*Dispatcher) { time.Sleep(overdue) }},
		{"its events take all slots for a short time", true, func(d *Dispatcher) {
			d.Submit(tasks("p", "short", 2))
			d.Next(0, 64)
		}},
		{"it has work of its own", false, func(d *Dispatcher) { d.Next(0, 0) }},
		{"it has closed the context", false, func(d *Dispatcher) { closed(d, 0, worker("o", "w")) }},
		{"it has closed another context", true, func(d *Dispatcher) {
			closed(d, 0, worker("p", "short"))
			closed(d, 0, worker("o", "gone"))
			closed(d, 0, worker("nobody", "w"))
			other := worker("o", "w")
			other.Version = "2-abc"
			closed(d, 0, other)
			closed(d, 1, worker("o", "w"))
		}},
		{"there are many events", false,
			func(d *Dispatcher) { d.Submit(tasks("o", "w", int(worthAnother/(100*time.Microsecond)))) }},
		{"there are some events", true,
			func(d *Dispatcher) { d.Submit(tasks("o", "w", int(worthAnother/(200*time.Microsecond)))) }},
		{"there are some events, and one before took long", true, func(d *Dispatcher) {
			d.owners["o"].routes["w"].base.ended(1, &lifecycle.End{Started: true, Warm: true, CPU: 5 * time.Millisecond})
			d.Submit(tasks("o", "w", int(worthAnother/(200*time.Microsecond))))
		}},
		{"its run went away with the context", false, func(d *Dispatcher) {
			d.Submit(tasks("o", "w", 1))
			d.Away(d.Next(0, 1)[0], true)
		}},
	} {
		synctest.Test(t, func(t *testing.T) {
			d, _ := newDispatcher(t, Config{Threads: 2, Slots: 2})
			for _, w := range []*workers.Worker{worker("o", "w"), worker("p", "short"), worker("p", "long")} {
				d.Install(workers.Only(w))
			}
			for range 2 {
				learn(t, d, 0, "p", "long", 5*time.Millisecond)
				learn(t, d, 0, "p", "short", 50*time.Microsecond)
				learn(t, d, 0, "o", "w", 100*time.Microsecond)
			}
			for _, name := range []string{"short", "long"} { // the first runs made contexts
				v := d.owners["p"].routes[name].base
				v.warmCost = v.coldCost
			}
			o := d.owners["o"].routes["w"].base
			o.warmCost = o.coldCost
			d.owners["p"].credit, d.owners["o"].credit = quantum, quantum
			require.Empty(t, d.Next(0, 1))
			own(d).idle.up(0, &d.pools.rest, time.Now())
			k.make(d)
			d.Submit(tasks("o", "w", 1))
			require.Equal(t, k.left, len(d.Next(1, 1)) == 0, k.what)
		})
	}
}

// warmOnFirst returns a Dispatcher of two threads, of which the first is warm for the workers o/w and p/w.
func warmOnFirst(t *testing.T) (*Dispatcher, *ledger) {
	d, l := newDispatcher(t, Config{Threads: 2})
	for _, o := range []string{"o", "p"} {
		d.Install(workers.Only(worker(o, "w")))
		learn(t, d, 0, o, "w", 100*time.Microsecond)
	}
	return d, l
}

// A thread is woken only for events that it takes.
func TestNoThreadIsWokenForWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := warmOnFirst(t)
		for thread := range 2 {
			require.Empty(t, d.Next(thread, 1))
		}
		l.takeWoken()
		d.Submit(tasks("o", "w", 1))
		require.Equal(t, []int{0}, l.takeWoken())
		batch := d.Next(0, 1)
		d.Submit(tasks("p", "w", 10))
		require.Empty(t, l.takeWoken(), "thread 0 works, and comes")
		d.Running(0, batch[0], 5*time.Millisecond)
		require.Equal(t, []int{1}, l.takeWoken(), "it does not come soon")
		require.NotEmpty(t, d.Next(1, 1))
	})
}

// Events that are left to a thread which does not come wake another one, though nothing else happens meanwhile.
func TestWhatIsLeftIsNotForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := warmOnFirst(t)
		go d.Run(t.Context())
		for range 3 { // time and again
			for thread := range 2 {
				require.Empty(t, d.Next(thread, 1))
			}
			l.takeWoken()
			d.Submit(tasks("p", "w", 1))
			require.Equal(t, []int{0}, l.takeWoken())
			first := d.Next(0, 1)
			require.Len(t, first, 1)
			d.Submit(tasks("o", "w", 1))
			synctest.Wait()
			d.lookAgain() // Run has something else to do meanwhile
			time.Sleep(overdue / 2)
			require.Empty(t, l.takeWoken())
			time.Sleep(2 * overdue)
			require.Equal(t, []int{1}, l.takeWoken())
			second := d.Next(1, 1)
			require.Len(t, second, 1)
			report(d, 0, 100*time.Microsecond, first)
			report(d, 1, 100*time.Microsecond, second)
			closed(d, 1, worker("o", "w"))
		}
	})
}

// Owners that are new wake the threads in turn, so that each thread gets as many of them.
func TestNewOwnersAreDivided(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const threads, each = 4, 5
		d, l := newDispatcher(t, Config{Threads: threads})
		got := map[int]int{}
		for thread := range threads {
			require.Empty(t, d.Next(thread, 1))
		}
		for i := range threads * each {
			d.Install(workers.Only(worker(fmt.Sprint(i), "w")))
			d.Submit(tasks(fmt.Sprint(i), "w", 1))
			woken := l.takeWoken()
			require.Len(t, woken, 1)
			thread := woken[0]
			report(d, thread, time.Millisecond, d.Next(thread, 1))
			require.Empty(t, d.Next(thread, 1))
			got[thread]++
			l.take()
		}
		for thread := range threads {
			require.Equal(t, each, got[thread], "thread %d", thread)
		}
	})
}

func closed(d *Dispatcher, thread int, w *workers.Worker) {
	d.Report(thread, []lifecycle.Report{{Closed: w}})
}

// A thread closes a context that was needed only for a moment, while another thread has one. It keeps one that is
// needed again and again.
func TestContextsThatAreNotNeededAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, l := warmOnFirst(t)
		go d.Run(t.Context())
		takes := func(thread int, owner string) {
			d.Submit(tasks(owner, "w", 1))
			batch := d.Next(thread, 1)
			require.Len(t, batch, 1)
			require.Equal(t, owner, batch[0].Worker.Owner)
			report(d, thread, 100*time.Microsecond, batch)
			l.take()
		}
		works := func(thread int) { // on something that dispatch did not give it
			require.Empty(t, d.Next(thread, 1))
			d.mu.Lock()
			own(d).idle.up(thread, &d.pools.rest, time.Now())
			d.mu.Unlock()
		}
		both := func() { // its own thread is late for o
			works(0)
			time.Sleep(overdue)
			takes(1, "o")
		}
		both()
		d.Submit(tasks("p", "w", 1))
		require.Len(t, d.Next(1, 1), 1) // its thread is late, too, and the context stays busy for long
		for range 10 {
			time.Sleep(keepSpare / 4)
			both()
			takes(0, "o")
		}
		of := map[string]int{}
		for _, c := range l.takeClosing() {
			require.Equal(t, 1, c.thread, "the first context of an owner stays")
			of[c.worker.Owner]++
		}
		require.Zero(t, of["o"], "it was needed each time")
		require.Positive(t, of["p"])

		for range 2 * 4 {
			time.Sleep(keepSpare / 4)
			require.Empty(t, d.Next(0, 1))
			takes(1, "o") // it has a context anyway, but the other thread is not late
		}
		time.Sleep(time.Minute)
		of = map[string]int{}
		for _, c := range l.takeClosing() {
			of[c.worker.Owner]++
			closed(d, c.thread, c.worker)
		}
		require.Positive(t, of["o"])
		require.Positive(t, of["p"], "it asks again until the thread has closed it")
		time.Sleep(time.Hour)
		require.Empty(t, l.takeClosing())
		d.mu.Lock()
		require.True(t, d.spares.due.IsZero(), "Run sleeps")
		d.mu.Unlock()
	})
}

// Nothing is closed of workers that were removed, and of modes whose contexts are not a thread's own.
func TestContextsThatAreNotExtra(t *testing.T) {
	for _, mode := range []workers.Mode{"", workers.Pinned, workers.Shared, workers.Persistent, workers.Oneshot} {
		for _, removed := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				d, l := newDispatcher(t, Config{Threads: 2})
				go d.Run(t.Context())
				w := worker("o", "w")
				w.Mode = mode
				d.Install(workers.Only(w))
				d.Submit(tasks("o", "w", 2))
				for thread := range 2 {
					time.Sleep(2 * overdue)
					report(d, thread, 100*time.Microsecond, d.Next(thread, 1))
				}
				l.take()
				if removed {
					d.Remove("o", "w")
				}
				time.Sleep(time.Hour)
				require.Equal(t, !removed && mode.OrDefault() == workers.Pinned, len(l.takeClosing()) > 0, "%s %t", mode, removed)
			})
		}
	}
}

// A thread that closes contexts runs no event, so it closes a few at once.
func TestFewContextsAreClosedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const owners = 5*closeAtOnce + 1
		d, l := newDispatcher(t, Config{Threads: 2})
		go d.Run(t.Context())
		for i := range owners {
			name := fmt.Sprint(i)
			d.Install(workers.Only(worker(name, "w")))
			d.Submit(tasks(name, "w", 2))
			for thread := range 2 {
				time.Sleep(2 * overdue)
				report(d, thread, 100*time.Microsecond, d.Next(thread, 1))
			}
			l.take()
		}
		of := map[string]int{}
		for len(of) < owners {
			time.Sleep(closeEvery / 2)
			now := l.takeClosing()
			require.LessOrEqual(t, len(now), closeAtOnce)
			for _, c := range now {
				of[c.worker.Owner]++
				closed(d, c.thread, c.worker)
			}
		}
		for owner, n := range of {
			require.Equal(t, 1, n, owner)
		}
	})
}
