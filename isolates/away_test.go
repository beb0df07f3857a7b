package isolates

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// work is code that takes about that much CPU time, however little of a processor it gets.
func work(ms int) string {
	return fmt.Sprintf(`{ let x = 1; for (let i = 0; i < %d; i++) { x ^= x << 13; x ^= x >>> 17; x ^= x << 5 } if (x === 0) throw x; }`, ms*500_000)
}

// lengthy is a worker whose events take that much CPU time, and have the limits for it.
func lengthy(ms int) *workers.Worker {
	w := worker("long", `let n = 0; export default { task(event) { `+work(ms)+`; return ++n } }`)
	w.Limits = workers.Limits{CPU: workers.Millis(time.Minute), Wall: workers.Millis(2 * time.Minute)}
	return w
}

// quick is a worker of another owner whose events wait for a timer. On a slow machine one of many may take much CPU
// time.
func quick() *workers.Worker {
	w := of("beta", worker("quick", `export default { task: async () => { await new Promise((r) => setTimeout(r, 5)); return 1 } }`))
	w.Limits.CPU = workers.Millis(time.Minute)
	return w
}

// of changes the owner of a worker.
func of(owner string, w *workers.Worker) *workers.Worker {
	mine := *w
	mine.Owner = owner
	return &mine
}

// begin starts an attempt and waits until it has a context. A count of what runs now may miss a run that ends soon.
func (b *bench) begin(w *workers.Worker, e *lifecycle.Delivery) *outcome {
	b.t.Helper()
	begun := func() uint64 { s := b.pool.Stats(); return s.WarmHits + s.ColdStarts }
	before := begun()
	o := b.start(w, e)
	require.Eventually(b.t, func() bool { return begun() > before }, patience, time.Millisecond)
	return o
}

// isOver reports whether the attempt has ended.
func (o *outcome) isOver() bool {
	select {
	case <-o.ended:
		return true
	default:
		return false
	}
}

// While the only thread is in a long event, other owners' events run, their timers fire, and their limits are kept. The
// long event ends normally.
func TestOthersRunBesideALongTurn(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, b *bench) {
		stuck := of("beta", worker("stuck", `export default { task: () => new Promise((r) => setTimeout(r, 1e8)) }`))
		stuck.Limits.Wall = workers.Millis(200 * time.Millisecond)
		waits := b.begin(stuck, task("null"))
		slow := b.begin(lengthy(400), task("null"))
		for range 3 {
			o := b.run(quick(), task("null"))
			require.Nil(t, o.end.Failure)
		}
		waits.wait(t, waits.ended)
		require.Equal(t, events.ReasonTimeout, waits.end.Failure.Reason)
		require.False(t, slow.isOver(), "they did not wait for it")
		b.mu.Lock()
		require.Equal(t, 1, b.away)
		b.mu.Unlock()
		slow.wait(t, slow.ended)
		require.Nil(t, slow.end.Failure)
		require.Greater(t, slow.end.CPU, 2*turnQuantum)
		b.mu.Lock()
		require.Zero(t, b.away)
		var told time.Duration
		for _, cpu := range b.told {
			told = max(told, cpu)
		}
		b.mu.Unlock()
		require.Greater(t, told, turnQuantum, "it was counted while it ran, however little a busy machine let it run")
	})
}

// Events for a context or an isolate wait while a turn of it is away. None is lost.
func TestWhatComesToAnIsolateThatIsAway(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, b *bench) {
		w := worker("w", `let ticks = 0; setInterval(() => ticks++, 1);
			export default { async task(event) {
				if (event.payload === "long") { `+work(150)+`; return 0 }
				for (let i = 0; i < 3; i++) await new Promise((r) => setTimeout(r, 20));
				return 1;
			} }`)
		w.Limits = workers.Limits{CPU: workers.Millis(time.Minute)}
		for round := range 2 {
			var all []*outcome
			all = append(all, b.begin(w, task(`"short"`)))
			all = append(all, b.start(w, task(`"long"`)))
			for range 3 {
				all = append(all, b.start(w, task(`"short"`)), b.start(of("beta", w), task(`"short"`)))
			}
			for _, o := range all {
				o.wait(t, o.ended)
				require.Nil(t, o.end.Failure, "round %d", round)
				require.False(t, o.end.Interrupted)
			}
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		require.NotZero(t, b.leaves)
		require.Zero(t, b.away)
	})
}

// A limit of another run that passes while the isolate is away is nothing any more when the turn ends all its runs.
func TestLimitThatPassesWhileItsIsolateIsAway(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	waits := worker("waits", `export default { task(event, env, ctx) { ctx.waitUntil(new Promise(() => setInterval(() => {}, 20))); return 1 } }`)
	waits.Limits.Wall = workers.Millis(300 * time.Millisecond)
	grows := worker("grows", `export default { task() { `+work(600)+` const keep = []; for (;;) keep.push(new Array(1000).fill(1.5)) } }`)
	grows.Limits = workers.Limits{CPU: workers.Millis(time.Minute), Wall: workers.Millis(patience)}
	first := b.start(waits, task("null"))
	first.wait(t, first.replied)
	second := b.start(grows, task("null"))
	for _, o := range []*outcome{first, second} {
		o.wait(t, o.ended)
	}
	require.True(t, first.end.Interrupted)
	require.Equal(t, events.ReasonMemory, second.end.Failure.Reason)
	require.Nil(t, b.run(quick(), task("null")).end.Failure, "the thread has carried out what it had postponed")
	b.mu.Lock()
	require.NotZero(t, b.leaves)
	b.mu.Unlock()
	for _, line := range b.lines() {
		require.NotContains(t, line, "cut short", "the event was over")
	}
}

// A turn that is away keeps its limits.
func TestTurnThatIsAwayIsLimited(t *testing.T) {
	t.Parallel()
	for limit, reason := range map[workers.Limits]events.Reason{
		{CPU: workers.Millis(300 * time.Millisecond)}:                                             events.ReasonCPU,
		{CPU: workers.Millis(time.Minute), Wall: workers.Millis(2 * time.Second)}:                 events.ReasonTimeout,
		{CPU: workers.Millis(time.Minute), Wall: workers.Millis(2 * time.Minute), HeapMB: 1 << 5}: events.ReasonMemory,
	} {
		b := newBench(t)
		code := `for (;;);`
		if reason == events.ReasonMemory {
			code = work(300) + `const keep = []; for (;;) keep.push(new Array(1000).fill(1.5))`
		}
		w := worker("w", `export default { task() { `+code+` } }`)
		w.Limits = limit
		slow := b.begin(w, task("null"))
		for !slow.isOver() {
			require.Nil(t, b.run(quick(), task("null")).end.Failure)
		}
		require.Equal(t, reason, slow.end.Failure.Reason)
		require.Equal(t, 1, b.leaves)
		require.Nil(t, b.run(w2(), task("null")).end.Failure)
		require.Zero(t, b.pool.losses.ranAway.Load())
	}
}

func w2() *workers.Worker { return worker("w2", `export default { task: () => 1 }`) }

// A turn that V8 does not end, and that comes back when its thread has ended, leaves nothing behind.
func TestTurnThatComesBackAfterItsThread(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	slow := b.begin(straying("w"), fetch("GET", "http://x/", ""))
	for !slow.isOver() {
		require.Nil(t, b.run(quick(), task("null")).end.Failure)
	}
	require.EqualValues(t, 1, b.pool.losses.ranAway.Load())
	b.close()
	awaitRunaways(t, b.pool)
	require.Eventually(t, func() bool { return b.pool.memory.lost.Load() == 0 }, patience, time.Millisecond,
		"its isolate is closed")
}

// A turn that V8 does not end costs its isolate. No other owner loses anything.
func TestTurnThatIsAwayStrays(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	sleeper := of("beta", worker("sleeper", `export default { fetch: () => new Promise(done => setTimeout(() => done(new Response("slept")), 1000)) }`))
	beside := b.begin(sleeper, fetch("GET", "http://x/", ""))
	slow := b.begin(straying("w"), fetch("GET", "http://x/", ""))
	for !slow.isOver() {
		require.Nil(t, b.run(quick(), task("null")).end.Failure)
	}
	require.Equal(t, events.ReasonCPU, slow.end.Failure.Reason)
	require.EqualValues(t, 1, b.pool.losses.ranAway.Load())
	beside.wait(t, beside.ended)
	require.Nil(t, beside.end.Failure)
	require.False(t, beside.end.Interrupted, "the thread went on")
	awaitRunaways(t, b.pool)
	require.Nil(t, b.run(w2(), task("null")).end.Failure)
	require.Zero(t, b.away)
}

// The evaluation of a module goes away like other turns.
func TestModuleThatLoadsForLong(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, b *bench) {
		code := work(100) + `; await new Promise((r) => setTimeout(r, 10)); ` + work(100)
		w := worker("w", code+`; export default { task: () => 1 }`)
		slow := b.begin(w, task("null"))
		for !slow.isOver() {
			require.Nil(t, b.run(quick(), task("null")).end.Failure)
		}
		require.Nil(t, slow.end.Failure)
		require.NotZero(t, b.leaves)

		broken := worker("broken", work(100)+`; throw new Error("no")`)
		slow = b.start(broken, task("null"))
		for !slow.isOver() {
			require.Nil(t, b.run(quick(), task("null")).end.Failure)
		}
		require.Equal(t, events.ReasonException, slow.end.Failure.Reason)
	})
}

// A module that waits at its top level ends at the limit of loads, whatever the limits of its worker are.
func TestModuleThatLoadsForever(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, b *bench) {
		b.pool.load.wall = 200 * time.Millisecond
		o := b.run(worker("w", `await new Promise((r) => setInterval(() => {}, 10)); export default { task: () => 1 }`), task("null"))
		require.Equal(t, events.Fail(events.ReasonTimeout, "wall-clock limit of 200ms, while the module was loaded"), o.end.Failure)
	})
}

// A pool closes while turns are away, and what they ran is interrupted.
func TestCloseWhileTurnsAreAway(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, b *bench) {
		var slow []*outcome
		for i := range 5 {
			w := of(fmt.Sprint("owner", i), lengthy(60_000))
			slow = append(slow, b.start(w, task("null")))
		}
		require.Nil(t, b.run(quick(), task("null")).end.Failure)
		b.close()
		for _, o := range slow {
			o.wait(t, o.ended)
			require.True(t, o.end.Interrupted)
		}
		require.GreaterOrEqual(t, b.leaves, 5)
	})
}
