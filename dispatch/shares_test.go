package dispatch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// crowd is a dispatcher of owners whose windows end when the test says so.
type crowd struct {
	*testing.T
	d *Dispatcher
	l *ledger
}

func newCrowd(t *testing.T, cfg Config, owners ...string) *crowd {
	d, l := newDispatcher(t, cfg)
	for _, o := range owners {
		d.Install(workers.Only(worker(o, "w")))
	}
	d.shares.start = time.Now().Add(time.Hour)
	return &crowd{t, d, l}
}

// window ends the window, after which owners spend so much CPU time.
func (c *crowd) window() {
	c.d.mu.Lock()
	c.d.turnWindow(c.d.shares.start.Add(shareWindow))
	c.d.mu.Unlock()
}

// spend runs one event of the owner, wherever it may run.
func (c *crowd) spend(owner string, cpu time.Duration) {
	c.d.Submit(tasks(owner, "w", 1))
	for thread := range own(c.d).idle.threads {
		if batch := c.d.Next(thread, 1); len(batch) > 0 {
			report(c.d, thread, cpu, batch)
			break
		}
	}
	require.Zero(c, c.d.Figures().Stats().Queued)
	c.l.take()
	c.l.takeWoken()
}

// lie makes all threads sleep.
func (c *crowd) lie() {
	for thread := range own(c.d).idle.threads {
		require.Empty(c, c.d.Next(thread, 1))
	}
	c.l.takeWoken()
}

func (c *crowd) class(owner string) class { return c.d.owners[owner].class }

func TestHeavyOwnerLeavesThreadsToOthers(t *testing.T) {
	c := newCrowd(t, Config{Threads: 2, Background: 2}, "noisy", "quiet")
	c.spend("quiet", time.Millisecond)
	c.spend("noisy", 2*time.Second)
	require.Equal(t, heavy, c.class("noisy"))
	require.Equal(t, light, c.class("quiet"))
	require.Equal(t, 1, c.d.Figures().Stats().Heavy)
	c.lie()
	c.d.Submit(tasks("noisy", "w", 10))
	require.ElementsMatch(t, []int{2, 3}, c.l.takeWoken())
	for thread := range 2 {
		require.Empty(t, c.d.Next(thread, 1), "of a heavy owner, and the thread is kept for others")
	}
	for thread := 2; thread < 4; thread++ {
		require.Len(t, c.d.Next(thread, 1), 1, "a thread of its own for each processor")
	}
	c.d.Submit(tasks("quiet", "w", 2))
	require.NotEmpty(t, c.l.takeWoken())
	require.Equal(t, "quiet", c.d.Next(0, 1)[0].Event.Owner)
	require.Equal(t, "noisy", c.d.Next(2, 1)[0].Event.Owner, "threads of a lower priority are for heavy owners only")
	engage(c.d)
	require.Equal(t, "quiet", c.d.Next(1, 1)[0].Event.Owner)
}

func TestWhoIsHeavy(t *testing.T) {
	const s = time.Second
	for _, k := range []struct {
		what   string
		cfg    Config
		others []string
		spent  time.Duration
		want   class
	}{
		{"alone", Config{Threads: 2, Background: 2}, nil, 10 * s, light},
		{"its share", Config{Threads: 2, Background: 2}, []string{"a"}, s, light},
		{"more than its share", Config{Threads: 2, Background: 2}, []string{"a"}, 3 * s / 2, heavy},
		{"a small share", Config{Threads: 2, Background: 2}, []string{"a", "b", "c", "d", "e", "f", "g", "h", "i"}, s / 3,
			heavy},
		{"too little to matter", Config{Threads: 2, Background: 2}, []string{"a", "b", "c", "d", "e", "f", "g", "h", "i"},
			s / 5, light},
		{"no other threads", Config{Threads: 2}, []string{"a"}, 10 * s, light},
	} {
		c := newCrowd(t, k.cfg, append(k.others, "o")...)
		for _, other := range k.others {
			c.spend(other, time.Millisecond)
		}
		c.spend("o", k.spent/2)
		c.spend("o", k.spent-k.spent/2)
		require.Equal(t, k.want, c.class("o"), k.what)
	}
	c := newCrowd(t, Config{Threads: 2, Background: 2}, "a", "o")
	setPolicy(c.d, "o", workers.Policy{Weight: 3})
	c.spend("a", time.Millisecond)
	c.spend("o", 3*s/2)
	require.Equal(t, light, c.class("o"), "three quarters of two processors are its share")
	c.spend("o", s)
	require.Equal(t, heavy, c.class("o"))

	c = newCrowd(t, Config{Threads: 2, Background: 2}, "a", "o")
	c.spend("a", time.Millisecond)
	c.window()
	c.spend("o", 3*s/2)
	require.Equal(t, heavy, c.class("o"), "others had events in the last window")
}

func TestHeavyOwnerBecomesLight(t *testing.T) {
	c := newCrowd(t, Config{Threads: 2, Background: 2}, "noisy", "quiet")
	both := func(noisy time.Duration) class {
		c.spend("quiet", time.Millisecond)
		c.spend("noisy", noisy)
		c.window()
		return c.class("noisy")
	}
	require.Equal(t, heavy, both(1500*time.Millisecond))
	require.Equal(t, heavy, both(600*time.Millisecond), "less, but more than half of its share")
	require.Equal(t, light, both(400*time.Millisecond), "it does not get its share, or does not want it")
	require.Equal(t, heavy, both(1500*time.Millisecond))
	for range 2 {
		require.Equal(t, heavy, c.class("noisy"))
		c.spend("noisy", time.Second)
		c.window()
	}
	require.Equal(t, light, c.class("noisy"), "no others are there")
	require.Equal(t, heavy, both(1500*time.Millisecond))
	c.lie()
	c.d.Submit(tasks("noisy", "w", 1))
	c.l.takeWoken()
	c.window() // in which the owner had no events
	require.Equal(t, light, c.class("noisy"))
	require.Len(t, c.d.Next(0, 1), 1, "what waits goes with it")

	require.Equal(t, heavy, both(1500*time.Millisecond))
	c.d.Remove("noisy", "w")
	require.Len(t, c.d.shares.heavy, 1, "an event of it runs")
	c.d.Remove("quiet", "w")
	c.window()
	require.Empty(t, c.d.shares.heavy)
}

// On a large machine there are fewer threads of a lower priority than others: heavy owners have most of those, too.
func TestHeavyOwnersHaveAllProcessors(t *testing.T) {
	c := newCrowd(t, Config{Threads: 16, Background: 4, OwnerMaxRunning: 100}, "noisy", "quiet")
	c.spend("quiet", time.Millisecond)
	c.spend("noisy", 20*time.Second)
	require.Equal(t, heavy, c.class("noisy"))
	c.d.Submit(tasks("noisy", "w", 100))
	var runs []int
	for thread := range 20 {
		if len(c.d.Next(thread, 1)) > 0 {
			runs = append(runs, thread)
		}
	}
	require.Equal(t, []int{4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19}, runs,
		"as many as there are processors, and four are kept")
	c.d.Submit(tasks("quiet", "w", 2))
	require.Equal(t, "quiet", c.d.Next(0, 1)[0].Event.Owner)
	engage(c.d)
	require.Equal(t, "quiet", c.d.Next(10, 1)[0].Event.Owner, "light owners go first on threads that both may have")
}

// Heavy owners share what they have as others do.
func TestHeavyOwnersShareCPU(t *testing.T) {
	c := newCrowd(t, Config{Threads: 1, Background: 1, OwnerMaxQueued: 100_000}, "short", "long", "quiet")
	c.spend("quiet", time.Millisecond)
	for _, o := range []string{"short", "long"} {
		c.spend(o, time.Second)
		require.Equal(t, heavy, c.class(o))
	}
	cost := map[string]time.Duration{"short": 50 * time.Microsecond, "long": 5 * time.Millisecond}
	used := map[string]time.Duration{}
	c.d.Submit(tasks("short", "w", 50_000))
	c.d.Submit(tasks("long", "w", 500))
	for used["short"]+used["long"] < 4*time.Second {
		batch := c.d.Next(1, 64)
		require.NotEmpty(t, batch)
		for _, a := range batch {
			used[a.Event.Owner] += cost[a.Event.Owner]
			report(c.d, 1, cost[a.Event.Owner], []*lifecycle.Attempt{a})
		}
	}
	require.InEpsilon(t, used["short"], used["long"], 0.05)
}
