package isolates

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
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
	r := &run{attempt: &lifecycle.Attempt{Worker: &events.Worker{}}, context: &jsContext{isolate: &isolate{v8: &v8x.Isolate{}}}, cpuLeft: hour, wall: time.Now().Add(hour)}
	for name, looked := range map[string]bool{"looked at": true, "not looked at": false} {
		var w watch
		w.pin(unix.Gettid())
		burn(w.tid, 300*time.Millisecond) // by earlier turns
		before := threadCPU(w.tid)
		w.look(time.Now())
		w.begin(r, time.Now().Add(-second), false) // as if it had not run for a second
		burn(w.tid, 50*time.Millisecond)
		if looked {
			w.look(time.Now())
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
	w.look(now.Add(-second)) // as by a watchdog that did not run since it read the time
	cpu, _ := w.end(time.Now())
	require.GreaterOrEqual(t, cpu, time.Duration(0), "what began after the time of the look")
	w.begin(r, now, false)
	cpu, _ = w.end(now.Add(tick))
	require.Equal(t, tick, cpu, "a short turn is not worth a look at the clock of the thread")
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
	w.look(time.Now())
	burn(w.tid, 100*time.Millisecond)
	cpu := w.spent(time.Now().Add(-time.Hour)) // as if it had not run for an hour
	require.GreaterOrEqual(t, cpu, 100*time.Millisecond)
	require.LessOrEqual(t, cpu, threadCPU(w.tid)-before)
	since := time.Now()
	cpu = w.spent(since)
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
		w.begin(&run{attempt: &lifecycle.Attempt{Worker: &events.Worker{}}, context: &jsContext{isolate: &isolate{v8: iso}}, cpuLeft: time.Hour, wall: limit}, limit, false)
		return w, limit
	}
	w, limit := begin()
	burn(w.tid, 2*tick)
	w.look(limit.Add(2 * tick))
	require.Empty(t, w.killed, "nothing is known of it but earlier turns")
	burn(w.tid, 2*tick)
	w.look(limit.Add(4 * tick))
	require.Equal(t, events.ReasonTimeout, w.killed)

	w, limit = begin()
	w.look(limit.Add(lateAtLast + 1))
	require.Equal(t, events.ReasonTimeout, w.killed)
}
