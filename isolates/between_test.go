package isolates

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/isolates/owners"
)

// busy is JavaScript that keeps a processor busy for ms milliseconds.
func busy(ms int) string {
	return fmt.Sprintf(`{ const till = performance.now() + %d; while (performance.now() < till); }`, ms)
}

// intervals is a persistent worker that keeps its thread busy between events, with many timers of the module.
func intervals(name string, ms int) *workers.Worker {
	w := worker(name, `for (let i = 0; i < 400; i++) setInterval(() => `+busy(ms)+`, 1);
		export default { task: () => 1 }`)
	w.Mode = workers.Persistent
	return w
}

// Timers of persistent contexts leave room for other owners' events, are charged to their owner, and end with the
// context when they take too much.
func TestTimersBetweenEventsAreBounded(t *testing.T) {
	t.Parallel()
	b := openBench(t, func(p *Pool) { p.budgets.Share = 1000 }) // on a busy machine they get less than a tenth
	for i := range 3 {
		require.Nil(t, b.run(intervals(fmt.Sprint("w", i), 2), task("null")).end.Failure)
	}
	other := worker("w", `export default { task: () => 2 }`)
	other.Owner = "other"
	ended := func() (n int) {
		for _, line := range b.lines() {
			if strings.Contains(line, "the persistent contexts of acme took more than") {
				n++
			}
		}
		return n
	}
	answered := 0
	for ended() < 3 {
		require.Nil(t, b.run(other, task("null")).end.Failure)
		answered++
	}
	b.mu.Lock()
	charged := b.charged["acme"]
	b.mu.Unlock()
	require.Greater(t, charged, 900*time.Millisecond)
	require.Less(t, charged, owners.BetweenAtOnce+time.Minute/owners.BetweenShare+time.Second)
	require.Greater(t, answered, 20, "they took turns")
	// A new context has no new budget.
	require.Nil(t, b.run(intervals("w0", 2), task("null")).end.Failure)
	require.Eventually(t, func() bool { return ended() == 4 }, patience, time.Millisecond)
}

// Between events a persistent context may send no more in a second than one event may, however many timers it has.
func TestSendsBetweenEventsAreLimited(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := worker("w", `let refused = 0, jobs;
		for (let i = 0; i < 20; i++) setInterval(() => jobs && jobs.send(1).catch(() => refused++), 1);
		export default { task(event, env) { jobs = env.JOBS; return refused } }`)
	w.Mode, w.Queues, w.Limits.Sends = workers.Persistent, map[string]string{"JOBS": "jobs"}, 10
	began := time.Now()
	require.Nil(t, b.run(w, task("null")).end.Failure)
	require.Eventually(t, func() bool { return string(b.run(w, task("null")).reply.Body) != `{"success":true,"data":0}` },
		patience, 5*time.Millisecond)
	sent := func() int {
		b.mu.Lock()
		defer b.mu.Unlock()
		return len(b.sent)
	}
	require.Eventually(t, func() bool { return sent() > 0 }, patience, time.Millisecond,
		"those that were not refused are on their way")
	require.LessOrEqual(t, sent(), 10*(2+int(time.Since(began)/betweenPeriod)))
}

// The wall-clock limit of a waiting event is kept while another owner's timers keep the thread busy. The event's own
// timers fire, too.
func TestLimitsOfOthersAreKept(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	stuck := worker("stuck", `export default { task: () => new Promise((r) => setTimeout(r, 1e8)) }`)
	stuck.Owner, stuck.Limits.Wall = "other", workers.Millis(300*time.Millisecond)
	sleeps := worker("sleeps", `export default { task: () => new Promise((r) => setTimeout(r, 30)) }`)
	sleeps.Owner = "other"
	waits := b.begin(stuck, task("null"))
	busy := intervals("w", 10)
	require.Nil(t, b.run(busy, task("null")).end.Failure)
	for range 5 {
		require.Nil(t, b.run(sleeps, task("null")).end.Failure)
	}
	waits.wait(t, waits.ended)
	require.Equal(t, events.ReasonTimeout, waits.end.Failure.Reason)
}

// Owners take turns with queued calls, by CPU time: an owner with a thousand long queued calls does not delay one with
// a few short ones.
func TestQueuedCallsTakeTurns(t *testing.T) {
	t.Parallel()
	b := &bench{t: t}
	th := &thread{pool: &Pool{source: b}}
	var order []string
	add := func(owner string, n int, cost time.Duration) {
		r := &run{attempt: &lifecycle.Attempt{Worker: &workers.Worker{Owner: owner}}}
		for range n {
			th.queuedCalls.add(queuedCall{run: r, do: func() {
				order = append(order, owner)
				th.turned += cost
			}})
		}
	}
	add("long", 1000, 10*time.Millisecond)
	add("short", 100, 100*time.Microsecond)
	rounds := 0
	for th.queuedCalls.Len() == 2 {
		if !th.doQueuedCalls() {
			require.True(t, th.queuedCalls.ForgiveDebts())
		}
		rounds++
	}
	long := 0
	for _, o := range order {
		if o == "long" {
			long++
		}
	}
	require.LessOrEqual(t, long, 3, "100 short ones take as long as one long one")
	require.GreaterOrEqual(t, rounds, 10, "new events are looked for in between")
	for th.queuedCalls.Len() > 0 {
		th.doQueuedCalls()
		th.queuedCalls.ForgiveDebts()
	}
	require.Len(t, order, 1100)
	require.Zero(t, th.queuedCalls.Len())
	require.False(t, th.queuedCalls.ForgiveDebts())
}
