package cells

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// These tests run real cells.

// children are the processes of cells, in the order in which they started.
type children struct {
	mu  sync.Mutex
	all []*Process
}

// noted keeps the processes that a house starts.
func (x *children) noted(c *Config) {
	start := c.Start
	c.Start = func(ctx context.Context) (*Process, error) {
		p, err := start(ctx)
		if err == nil {
			x.mu.Lock()
			x.all = append(x.all, p)
			x.mu.Unlock()
		}
		return p, err
	}
}

// started is how many cells have started.
func (x *children) started() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.all)
}

// pidOf returns the process of the cell of a class; 0 = it has none.
func (h *house) pidOf(class string) int {
	h.pools.mu.Lock()
	c := h.pools.classes[class]
	h.pools.mu.Unlock()
	if c == nil {
		return 0
	}
	if live := c.live(); live != nil {
		return live.process.PID
	}
	return 0
}

// deploy installs a worker that change has changed.
func (h *house) deploy(owner, code string, change func(*workers.Worker)) {
	w := &workers.Worker{Owner: owner, Name: "w", Version: "1-x", Number: 1, Hash: code, Code: code, File: "w.js"}
	change(w)
	h.catalog.Install(workers.Only(w))
}

// endsOf is how many cells ended in a way.
func (h *house) endsOf(how string) int {
	m := h.pools.metrics
	m.mu.Lock()
	defer m.mu.Unlock()
	return int(m.ends[how])
}

// settledOnce requires that an event ended once and well, and that nothing comes after.
func (h *house) settledOnce(done chan lifecycle.Settlement) {
	h.t.Helper()
	reply, end := h.wait(done)
	require.Equal(h.t, lifecycle.Ack, end.Outcome.Verdict, reply)
	require.Nil(h.t, end.Outcome.Failure)
	require.Empty(h.t, done, "it was settled twice")
}

const slow = `export default { async task() { await new Promise((done) => setTimeout(done, 300)); return 1 } }`

// All events that run in a cell when it is killed run again. None is lost, and none ends twice.
func TestEventsOfAKilledCellRunAgain(t *testing.T) {
	t.Parallel()
	h := openHouse(t)
	h.install("alice", "w", slow)
	var all []chan lifecycle.Settlement
	for range 50 {
		all = append(all, h.submit("alice", "w", "1"))
	}
	require.Eventually(t, func() bool {
		h.pools.mu.Lock()
		c := h.pools.classes["all"]
		h.pools.mu.Unlock()
		if c == nil || c.live() == nil {
			return false
		}
		live := c.live()
		live.mu.Lock()
		defer live.mu.Unlock()
		return live.assigned.n == 50
	}, patience, time.Millisecond)
	require.NoError(t, syscall.Kill(h.pidOf("all"), syscall.SIGKILL))
	for _, one := range all {
		h.settledOnce(one)
	}
	require.Equal(t, 1, h.endsOf("died"))
	require.Zero(t, h.endsOf("lie"))
	h.mu.Lock()
	defer h.mu.Unlock()
	for e := range h.waiting {
		require.Equal(t, 1, e.Interrupted)
	}
}

// Cells of one class are killed at any time. Each event ends once, also of the other class, which is never interrupted.
func TestCellsMayBeKilledAtAnyTime(t *testing.T) {
	t.Parallel()
	const events, kills = 2000, 30
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	h := openHouse(t)
	h.classes["alice"], h.classes["bob"] = "killed", "left alone"
	h.install("alice", "w", `export default { async task() { await new Promise((d) => setTimeout(d, 2)); return 1 } }`)
	h.install("bob", "w", echo)
	h.pools.PoolOf("alice")
	h.pools.classes["killed"].pause.MaxInterval = 10 * time.Millisecond // it is killed more often than any other is
	for range kills {                                                   // an event must not be in too many cells that end
		var all []chan lifecycle.Settlement
		for range events / kills / 2 {
			all = append(all, h.submit("alice", "w", "1"), h.submit("bob", "w", "x"))
		}
		at := random.IntN(len(all))
		for i, one := range all {
			if i == at {
				if pid := h.pidOf("killed"); pid != 0 {
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
			}
			h.settledOnce(one)
		}
	}
	require.Zero(t, h.endsOf("lie"))
	h.mu.Lock()
	defer h.mu.Unlock()
	for e := range h.waiting {
		if e.Owner == "bob" {
			require.Zero(t, e.Interrupted)
		}
	}
}

// What ends a thread or a process of V8 costs its class only.
func TestFaultsCostTheirClassOnly(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]string{
		"a loop":                 `for (;;);`,
		"a bomb":                 `const a = []; for (;;) a.push(new Array(1e5).fill(1.5))`,
		"a fatal error of V8":    `return "a".repeat(2 ** 27).match(/a/g).length`,
		"work that does not end": `return Array.prototype.indexOf.call({ length: 2 ** 40 }, 1, 2 ** 40 - 3e6)`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := openHouse(t)
			h.classes["bad"], h.classes["good"], h.classes["own"] = "bad", "good", ""
			h.deploy("bad", `export default { task() { `+code+` } }`, func(w *workers.Worker) {
				w.Limits = workers.Limits{CPU: workers.Millis(200 * time.Millisecond), HeapMB: 64}
				w.Retries = workers.Retries{MaxAttempts: 1}
			})
			h.install("good", "w", slow)
			h.install("own", "w", slow)
			h.run("good", "w", "1")
			pid := h.pidOf("good")
			bad := h.submit("bad", "w", "1")
			for range 3 {
				for _, owner := range []string{"good", "own"} {
					h.settledOnce(h.submit(owner, "w", "1"))
				}
			}
			_, end := h.wait(bad)
			require.NotNil(t, end.Outcome.Failure)
			require.Equal(t, pid, h.pidOf("good"))
			require.Zero(t, h.endsOf("lie"))
			h.mu.Lock()
			defer h.mu.Unlock()
			for e := range h.waiting {
				if e.Owner != "bad" {
					require.Zero(t, e.Interrupted)
				}
			}
		})
	}
}

// A cell that rests ends, and the next event starts another one.
func TestCellsThatRestEnd(t *testing.T) {
	t.Parallel()
	var started children
	h := openHouse(t, started.noted, func(c *Config) { c.IdleAfter = 20 * time.Millisecond })
	h.install("alice", "w", echo)
	for n := range 3 {
		h.settledOnce(h.submit("alice", "w", "x"))
		require.Eventually(t, func() bool { return h.endsOf("idle") == n+1 }, patience, time.Millisecond)
		require.Equal(t, n+1, started.started())
	}
	require.Zero(t, h.endsOf("died"))
}

// A context that is kept keeps its cell.
func TestPersistentContextsKeepTheirCell(t *testing.T) {
	t.Parallel()
	h := openHouse(t, func(c *Config) { c.IdleAfter = 20 * time.Millisecond })
	h.classes["alice"], h.classes["bob"] = "kept", "rests"
	h.deploy("alice", `let n = 0; export default { task() { return ++n } }`, func(w *workers.Worker) {
		w.Mode = workers.Persistent
	})
	h.install("bob", "w", echo)
	for n := range 3 {
		reply, _ := h.run("alice", "w", "x")
		require.JSONEq(t, fmt.Sprintf(`{"success":true,"data":%d}`, n+1), reply)
		h.run("bob", "w", "x")
		require.Eventually(t, func() bool { return h.endsOf("idle") == n+1 }, patience, time.Millisecond)
	}
	require.NotZero(t, h.pidOf("kept"))
}

// If there are as many cells as there may be, the one that rests longest ends for a class that waits, and one that runs
// something does not.
func TestClassesTakeTurns(t *testing.T) {
	t.Parallel()
	var started children
	h := openHouse(t, started.noted, func(c *Config) { c.Most = 2 })
	for _, owner := range []string{"a", "b", "c", "busy"} {
		h.classes[owner] = owner
		h.install(owner, "w", echo)
	}
	h.install("busy", "w", `export default { task() { return new Promise(() => setTimeout(() => {}, 1e8)) } }`)
	h.run("a", "w", "x")
	h.run("b", "w", "x")
	h.run("a", "w", "x")
	h.run("c", "w", "x")
	require.Zero(t, h.pidOf("b"), "it rested longest")
	require.NotZero(t, h.pidOf("a"))
	h.submit("busy", "w", "x")
	require.Eventually(t, func() bool { return h.pidOf("busy") != 0 }, patience, time.Millisecond)
	require.Zero(t, h.pidOf("a"))
	pid := h.pidOf("busy")
	var all []chan lifecycle.Settlement
	for range 3 {
		for _, owner := range []string{"a", "b", "c"} {
			all = append(all, h.submit(owner, "w", "x"))
		}
	}
	for _, one := range all {
		h.settledOnce(one)
	}
	require.Equal(t, pid, h.pidOf("busy"))
	require.GreaterOrEqual(t, started.started(), 6)
	require.LessOrEqual(t, h.pools.cells, 2)
	require.Zero(t, h.endsOf("died")+h.endsOf("lie")+h.endsOf("start"))
}
