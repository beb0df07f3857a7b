package dispatch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// clock plays one thread in CPU time, with no time passing: owners keep their queues full.
type clock struct {
	d    *Dispatcher
	cpu  map[string]time.Duration // what an event of the owner takes
	used map[string]time.Duration
}

// turn runs one batch. It returns the CPU time it took.
func (c *clock) turn(t *testing.T) (took time.Duration) {
	batch := c.d.Next(0, 64)
	require.NotEmpty(t, batch)
	var again []*lifecycle.Delivery
	for _, a := range batch {
		o := a.Event.Owner
		c.used[o] += c.cpu[o]
		took += c.cpu[o]
		report(c.d, 0, c.cpu[o], []*lifecycle.Attempt{a})
		if o != "quiet" {
			again = append(again, a.Event)
		}
	}
	c.d.Submit(again)
	return took
}

func TestOwnersShareCPU(t *testing.T) {
	d, l := newDispatcher(t, Config{Threads: 1, OwnerMaxQueued: 1_000_000})
	c := &clock{d: d, used: make(map[string]time.Duration), cpu: map[string]time.Duration{
		"short": 50 * time.Microsecond, "long": 5 * time.Millisecond, "quiet": 20 * time.Microsecond,
	}}
	for o := range c.cpu {
		d.Install(workers.Only(worker(o, "w")))
	}
	d.Submit(tasks("short", "w", 100_000))
	d.Submit(tasks("long", "w", 3))
	for c.used["short"]+c.used["long"] < 2*time.Second {
		c.turn(t)
	}
	require.InEpsilon(t, c.used["short"], c.used["long"], 0.02, "a hundred times the cost per event, the same share")

	// One event at a time of a quiet owner behind that backlog waits for what runs, not for the backlog.
	var waits []time.Duration
	for range 100 {
		d.Submit(tasks("quiet", "w", 1))
		was, wait := c.used["quiet"], time.Duration(0)
		for c.used["quiet"] == was {
			wait += c.turn(t)
		}
		waits = append(waits, wait)
		c.turn(t)
		l.take()
	}
	for i, w := range waits {
		require.LessOrEqual(t, w, quantum+2*c.cpu["long"], "event %d", i)
	}
}

// An owner's policy takes effect at once, and its end, too.
func TestPolicyOfAnOwner(t *testing.T) {
	d, l := newDispatcher(t, Config{Threads: 1, OwnerMaxQueued: 1_000_000})
	c := &clock{d: d, used: make(map[string]time.Duration), cpu: map[string]time.Duration{
		"heavy": 100 * time.Microsecond, "light": 100 * time.Microsecond,
	}}
	for o := range c.cpu {
		d.Install(workers.Only(worker(o, "w")))
		d.Submit(tasks(o, "w", 10_000))
	}
	share := func(want float64) {
		clear(c.used)
		for c.used["heavy"]+c.used["light"] < time.Second {
			c.turn(t)
		}
		require.InEpsilon(t, want, float64(c.used["heavy"])/float64(c.used["light"]), 0.1)
	}
	share(1)
	setPolicy(d, "heavy", workers.Policy{Weight: 3})
	share(3)
	setPolicy(d, "heavy", workers.Policy{})
	share(1)

	setPolicy(d, "new", workers.Policy{MaxRunning: 2, MaxQueued: 5}) // before the owner exists
	d.Install(workers.Only(worker("new", "w")))
	setPolicy(d, "heavy", workers.Policy{MaxRunning: 1})
	setPolicy(d, "light", workers.Policy{MaxRunning: 1})
	l.take()
	d.Submit(tasks("new", "w", 20))
	parked := 0
	for _, s := range l.take() {
		if s.Order == lifecycle.Park {
			parked++
		}
	}
	require.Equal(t, 15, parked)
	running := map[string]int{}
	for batch := d.Next(0, 64); len(batch) > 0; batch = d.Next(0, 64) {
		for _, a := range batch {
			running[a.Event.Owner]++
		}
	}
	require.Equal(t, map[string]int{"new": 2, "heavy": 1, "light": 1}, running)
}

// An owner's limit in the fleet is divided among the processes: at least one each, and never more than a process's
// limit.
func TestFleetWideLimits(t *testing.T) {
	d, l := newDispatcher(t, Config{Threads: 1, OwnerMaxRunning: 20, OwnerMaxQueued: 50})
	d.Install(workers.Only(worker("o", "w")))
	setPolicy(d, "o", workers.Policy{FleetMaxRunning: 12, FleetMaxQueued: 100})
	var running []*lifecycle.Attempt
	fill := func() int {
		for {
			batch := d.Next(0, 64)
			if len(batch) == 0 {
				return len(running)
			}
			running = append(running, batch...)
		}
	}
	d.Submit(tasks("o", "w", 40))
	require.Equal(t, 12, fill())
	for _, c := range []struct{ processes, running, queued int }{{1, 12, 50}, {3, 4, 33}, {5, 2, 20}, {20, 1, 5},
		{0, 12, 50}, {2, 6, 50}} {
		report(d, 0, time.Microsecond, running)
		running = nil
		d.SetProcesses(c.processes)
		l.takeWoken()
		d.Submit(tasks("o", "w", 100))
		require.Equal(t, c.running, fill(), "%d processes", c.processes)
		o := d.owners["o"]
		require.Equal(t, []int{c.running, c.queued}, []int{o.maxRunning, o.maxQueued})
		l.take()
	}
	setPolicy(d, "o", workers.Policy{FleetMaxRunning: 12})
	require.Equal(t, []LimitStats{{"o", "", 12, d.owners["o"].held(), 6}}, d.Figures().Limited(9), "of the fleet")
	setPolicy(d, "o", workers.Policy{MaxRunning: 7})
	require.Empty(t, d.Figures().Limited(9))
	setPolicy(d, "o", workers.Policy{FleetMaxRunning: 1000, MaxRunning: 7})
	require.Equal(t, 7, d.owners["o"].maxRunning)

	// More room is used at once.
	d.SetProcesses(10)
	setPolicy(d, "o", workers.Policy{FleetMaxRunning: 20})
	report(d, 0, time.Microsecond, running)
	running = nil
	fill()
	l.takeWoken()
	d.Next(0, 64)
	d.SetProcesses(1)
	require.NotEmpty(t, l.takeWoken())
}

// setPolicy sets the policy of an owner in the catalog that d follows.
func setPolicy(d *Dispatcher, owner string, p workers.Policy) {
	d.gates.owners.cfg.Catalog.SetPolicy(owner, p)
	d.PolicySet(owner)
}
