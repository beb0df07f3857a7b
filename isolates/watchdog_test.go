package isolates

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// burn uses CPU time of the thread.
func burn(tid int, d time.Duration) {
	for until := threadCPU(tid) + d; threadCPU(tid) < until; {
		continue
	}
}

// A turn that gets no processor uses no CPU time, although time passes.
func TestTurnIsChargedWhatItUses(t *testing.T) {
	t.Parallel()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const second, hour = time.Second, time.Hour
	r := &run{attempt: &lifecycle.Attempt{Worker: &workers.Worker{}},
		context: &jsContext{isolate: &isolate{v8: &v8x.Isolate{}}}, cpuLeft: hour, wall: time.Now().Add(hour)}
	for name, looked := range map[string]bool{"looked at": true, "not looked at": false} {
		var w watch
		w.pin(unix.Gettid())
		burn(w.tid, 300*time.Millisecond) // by earlier turns
		before := threadCPU(w.tid)
		w.check(time.Now())
		w.begin(r, time.Now().Add(-second), false) // as if it had not run for a second
		burn(w.tid, 50*time.Millisecond)
		if looked {
			w.check(time.Now())
		}
		burn(w.tid, 50*time.Millisecond)
		cpu, killed := w.end(time.Now())
		require.Empty(t, killed)
		require.GreaterOrEqual(t, cpu, 100*time.Millisecond, name)
		require.LessOrEqual(t, cpu, threadCPU(w.tid)-before, name)
	}
	var w watch
	w.pin(unix.Gettid())
	now := time.Now()
	w.begin(r, now, false)
	w.check(now.Add(-second)) // as by a watchdog that did not run since it read the time
	cpu, _ := w.end(time.Now())
	require.GreaterOrEqual(t, cpu, time.Duration(0), "what began after the time of the look")
	w.begin(r, now, false)
	cpu, _ = w.end(now.Add(shortTurn))
	require.Equal(t, shortTurn, cpu, "a short turn is not worth a look at the clock of the thread")
	for range 100 {
		w.check(time.Now())
		looked := threadCPU(w.tid)
		w.begin(r, time.Now().Add(-tick), false) // as if it had got no processor for so long
		cpu, _ = w.end(time.Now())
		require.LessOrEqual(t, cpu, max(threadCPU(w.tid)-looked, time.Millisecond), "many of them do not use up the CPU time of a run")
	}
}

// A watchdog that did not run for long does not take the time of the turn before for that of the turn that it finds,
// which has only waited. What a turn must have used itself counts.
func TestLateWatchdogAccusesTheRightTurn(t *testing.T) {
	t.Parallel()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	r := &run{attempt: &lifecycle.Attempt{Worker: &workers.Worker{}},
		context: &jsContext{isolate: &isolate{v8: &v8x.Isolate{}}}, cpuLeft: time.Minute, wall: time.Now().Add(time.Hour)}
	for name, own := range map[string]bool{"its own": true, "of another": false} {
		var w watch
		w.pin(unix.Gettid())
		start := w.looked
		burn(w.tid, 300*time.Millisecond)
		if !own {
			start = time.Now()
		}
		w.begin(r, start, false)
		w.check(time.Now().Add(time.Second))
		cpu, killed := w.end(time.Now())
		require.Empty(t, killed)
		require.Equal(t, own, cpu >= 300*time.Millisecond, "%s: %v", name, cpu)
	}
}

// The making of a context is charged in the same way, although it is not a turn.
func TestContextIsChargedWhatItUses(t *testing.T) {
	t.Parallel()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var w watch
	w.pin(unix.Gettid())
	burn(w.tid, 300*time.Millisecond) // by earlier turns
	before := threadCPU(w.tid)
	w.check(time.Now())
	burn(w.tid, 100*time.Millisecond)
	cpu := w.cpuSince(time.Now().Add(-time.Hour)) // as if it had not run for an hour
	require.GreaterOrEqual(t, cpu, 100*time.Millisecond)
	require.LessOrEqual(t, cpu, threadCPU(w.tid)-before)
	since := time.Now()
	cpu = w.cpuSince(since)
	require.LessOrEqual(t, cpu, time.Since(since), "no more than has passed")
}

// A short turn at the wall-clock limit ends by itself. A turn that continues is killed. One that hardly gets a
// processor has some more time.
func TestShortTurnsAreNotKilledAtTheWallClockLimit(t *testing.T) {
	t.Parallel()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	iso := v8x.NewIsolate(v8x.Limits{Heap: 64 << 20, Buffers: 1 << 20})
	defer iso.Close()
	begin := func() (w *watch, limit time.Time) {
		w, limit = &watch{}, time.Now()
		w.pin(unix.Gettid())
		w.begin(&run{attempt: &lifecycle.Attempt{Worker: &workers.Worker{}}, context: &jsContext{isolate: &isolate{v8: iso}},
			cpuLeft: time.Hour, wall: limit}, limit, false)
		return w, limit
	}
	w, limit := begin()
	burn(w.tid, 2*tick)
	w.check(limit.Add(2 * tick))
	require.Empty(t, w.killed, "nothing is known of it but earlier turns")
	burn(w.tid, 2*tick)
	w.check(limit.Add(4 * tick))
	require.Equal(t, events.ReasonTimeout, w.killed)

	w, limit = begin()
	w.check(limit.Add(lateAtLast + 1))
	require.Equal(t, events.ReasonTimeout, w.killed)
}

// While threads wake often, the watchdog sleeps in system calls and does not stop between events.
func TestWatchdogStaysAwakeWhileThreadsWakeOften(t *testing.T) {
	t.Parallel()
	d := newWatchdog(runtime.GOMAXPROCS(0) - 2)
	stayed := make(chan struct{})
	d.nap = sync.OnceFunc(func() { close(stayed) })
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { d.run(done, func(time.Time) {}) })
	require.Eventually(t, func() bool {
		d.awake()
		d.asleep()
		select {
		case <-stayed:
			return true
		default:
			return false
		}
	}, patience, time.Millisecond)
	close(done)
	running.Wait()
}

func TestWatchdogStopsWhenThreadsNoLongerWake(t *testing.T) {
	t.Parallel()
	d := newWatchdog(0)
	const last = 5 // the nap in which a thread wakes
	naps, looks := 0, 0
	d.nap = func() {
		if naps++; naps == last {
			d.awake()
		}
	}
	d.keepAwake(nil, func(time.Time) { looks++; d.asleep() })
	require.Equal(t, last+int(often/tick), naps)
	require.Equal(t, 1, looks, "only while a thread works")

	done := make(chan struct{})
	d.nap = func() { d.awake(); d.asleep(); close(done) }
	d.keepAwake(done, nil)
}

// Without a processor that nothing else keeps, all goroutines would wait for the watchdog.
func TestWatchdogLeavesAProcessor(t *testing.T) {
	t.Parallel()
	n := runtime.GOMAXPROCS(0)
	d := newWatchdog(n - 2)
	require.True(t, d.mayKeepAwake())
	d = newWatchdog(n - 1)
	require.False(t, d.mayKeepAwake())
}
