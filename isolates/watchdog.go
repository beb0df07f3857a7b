package isolates

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// tick is how often the watchdog looks. A limit may be overrun by this much.
const tick = 5 * time.Millisecond

// lateAtLast is how long a turn that uses next to no CPU time may go on after the wall-clock limit. A short one ends before, and then
// its run is ended without a kill, which would take all that its context has with it.
const lateAtLast = 50 * tick

// watch is the watchdog's view of one thread: the turn it is in. A turn is one stay in V8.
type watch struct {
	mu       sync.Mutex
	turn     uint64       // of all turns, the one that it is in or was in last
	fixed    bool         // the turn may not go away
	away     bool         // the turn goes on beside its thread, and is the last on this watch
	lost     atomic.Bool  // of a turn that is away: it was given up
	back     bool         // the thread strayed and is back; by strays.mu
	run      *run         // for which the thread is in V8
	isolate  *v8x.Isolate // nil between turns
	tid      int          // of the thread
	start    time.Time
	cpuLeft  time.Duration // CPU time the turn may use
	deadline time.Time     // wall-clock limit
	killed   events.Reason // why the watchdog ended the turn, "" if it did not
	grace    int           // ticks since it was killed
	killedAt time.Time
	killCPU  time.Duration // the thread's CPU clock then

	// Set at the watchdog's first look at the turn: the thread's CPU clock then, and what the turn had used at most
	// (soFar). A turn it never looked at was short: its wall time stands for its CPU time, and no clock
	// of the thread, a system call, had to be read.
	sampled bool
	cpuThen time.Duration
	before  time.Duration
	seen    time.Duration // the thread's CPU clock at the latest look at it, in a turn or not
}

// pin notes the thread that is watched.
func (w *watch) pin(tid int) {
	w.mu.Lock()
	w.tid, w.seen = tid, threadCPU(tid)
	w.mu.Unlock()
}

// pinned is the thread that is watched, 0 before it has started.
func (w *watch) pinned() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.tid
}

// begin opens a turn of r. Owner thread only.
func (w *watch) begin(r *run, now time.Time, fixed bool) {
	w.mu.Lock()
	w.turn++
	w.fixed = fixed
	w.run, w.isolate, w.start, w.cpuLeft, w.deadline = r, r.guest.isolate.v8, now, r.cpuLeft, r.wall
	w.killed, w.grace, w.sampled = "", 0, false
	w.mu.Unlock()
}

// end closes the turn and returns the CPU time it took and why it was killed, if it was. After end
// the watchdog can no longer terminate the isolate. Owner thread only.
func (w *watch) end(now time.Time) (cpu time.Duration, killed events.Reason) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.run, w.isolate = nil, nil
	if !w.sampled {
		if wall := now.Sub(w.start); wall <= 2*tick {
			return wall, w.killed
		}
	}
	return w.used(now, threadCPU(w.tid)), w.killed
}

// used is the CPU time of the turn when the thread's clock stands at cpu.
func (w *watch) used(now time.Time, cpu time.Duration) time.Duration {
	if !w.sampled {
		return w.soFar(now.Sub(w.start), cpu)
	}
	return w.before + cpu - w.cpuThen
}

// soFar is what the thread can have used in the time that passed since something began that was not looked at yet: no more
// than that, and no more than it has used since the latest look. On a busy machine that is far less. Nothing has passed where it began
// after the watchdog had last read the time.
func (w *watch) soFar(passed, cpu time.Duration) time.Duration {
	return max(0, min(passed, cpu-w.seen))
}

// spent is the CPU time that the thread can have used since start, outside of a turn. Owner thread only.
func (w *watch) spent(start time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.soFar(time.Since(start), threadCPU(w.tid))
}

// look checks the turn against its limits and terminates it when it is over one. Watchdog only.
func (w *watch) look(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.tid == 0 {
		return
	}
	cpu := threadCPU(w.tid)
	defer func() { w.seen = cpu }()
	if w.isolate == nil {
		return
	}
	if !w.sampled {
		w.sampled, w.cpuThen, w.before = true, cpu, w.soFar(now.Sub(w.start), cpu)
	}
	if w.killed == "" {
		switch {
		case w.used(now, cpu) > w.cpuLeft:
			w.killed = events.ReasonCPU
		case now.After(w.deadline) && (cpu-w.cpuThen > tick || now.Sub(w.deadline) > lateAtLast):
			w.killed = events.ReasonTimeout
		}
	}
	// Termination is asked for again: what cannot be interrupted may have swallowed it.
	if w.killed != "" && w.grace%20 == 0 {
		w.isolate.Terminate()
	}
	if w.killed != "" {
		if w.grace == 0 {
			w.killedAt, w.killCPU = now, cpu
		}
		w.grace++
	}
}

// strayAfter is how much CPU time V8 may take to notice that a turn is killed. Some builtins look at nothing until they are
// done, which can be never: Array.prototype.indexOf.call({ length: 2 ** 53 - 1 }, 1). A thread that the system does not let
// run has not strayed; after strayAtLast it has whatever it does.
const (
	strayAfter  = 150 * time.Millisecond
	strayAtLast = 5 * time.Second
)

// culprit is the run for which a thread was in V8 when it was lost, and why that failed. run is nil when it was for none.
type culprit struct {
	run  *run
	turn time.Time // when that turn began
	why  *events.Failure
}

// parked is the culprit of a thread that V8 has parked.
func (w *watch) parked() *culprit {
	w.mu.Lock()
	defer w.mu.Unlock()
	return &culprit{w.run, w.start, parkedFailure()}
}

// strayed says whose fault it is, once, when the turn has outlived its kill for too long, and sets lost. From
// then on the thread's state is the watchdog's: the thread sees lost before it touches anything, and waits until it is replaced.
func (w *watch) strayed(now time.Time, lost *atomic.Bool) *culprit {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.isolate == nil || w.grace == 0 || !w.overstays(now) || !lost.CompareAndSwap(false, true) {
		return nil
	}
	// What runs now burns a processor until it ends, if it ever does: let everything else go first.
	_ = unix.Setpriority(unix.PRIO_PROCESS, w.tid, 19)
	switch {
	case w.killed == stopped:
		return &culprit{w.run, w.start, &events.Failure{Reason: stopped}}
	case w.isolate.Flags()&v8x.HeapLimit != 0:
		return &culprit{w.run, w.start, w.run.memoryFailure()}
	case w.killed == events.ReasonTimeout:
		return &culprit{w.run, w.start, w.run.wallFailure()}
	}
	return &culprit{w.run, w.start, w.run.cpuFailure()}
}

// overstays reports whether the turn has had its time since it was killed.
func (w *watch) overstays(now time.Time) bool {
	since := now.Sub(w.killedAt)
	return since > strayAtLast || since > strayAfter && threadCPU(w.tid)-w.killCPU > strayAfter
}

// stopped is why a turn is ended when the pool closes. It is nobody's failure.
const stopped events.Reason = "stopped"

// kill has the turn under way, if any, ended at the next look. Watchdog only.
func (w *watch) kill(why events.Reason) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.isolate != nil && w.killed == "" && !w.run.ground { // onTerminate has limits of its own
		w.killed = why
	}
}

// blame says for which run the thread goes into V8 before there is an isolate to watch. Owner thread only.
func (w *watch) blame(r *run) {
	w.mu.Lock()
	w.run = r
	w.mu.Unlock()
}

// threadCPU is the CPU time that a thread has used (clock_getcpuclockid(3): the id of another thread's clock).
func threadCPU(tid int) time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^tid<<3|6), &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// RunDelays appends how long each pinned thread, those of Background left out, has waited for a processor so far: runnable, and not let run.
// It may be called from any goroutine. A thread that cannot be asked has waited for 0.
// https://docs.kernel.org/scheduler/sched-stats.html#proc-pid-schedstat
func (p *Pool) RunDelays(into []time.Duration) []time.Duration {
	for i := range p.cfg.Threads {
		into = append(into, runDelay(p.threads[i].Load().tid.Load()))
	}
	return into
}

// runDelay is the second number of a thread's schedstat, in nanoseconds.
func runDelay(tid int32) time.Duration {
	var buffer [64]byte
	file, err := os.Open("/proc/self/task/" + strconv.Itoa(int(tid)) + "/schedstat")
	if err != nil {
		return 0
	}
	defer file.Close()
	n, _ := file.Read(buffer[:])
	fields := strings.Fields(string(buffer[:n]))
	if len(fields) < 2 {
		return 0
	}
	waited, _ := strconv.ParseInt(fields[1], 10, 64)
	return time.Duration(waited)
}

// watchdog runs while any thread has work.
type watchdog struct {
	active atomic.Int64  // threads that are not asleep
	wake   chan struct{} // capacity 1
}

// awake and asleep are how a thread says that it works or does not.
func (d *watchdog) awake() {
	if d.active.Add(1) == 1 {
		select {
		case d.wake <- struct{}{}:
		default:
		}
	}
}

func (d *watchdog) asleep() { d.active.Add(-1) }

// run looks at every thread each tick while one works, until done is closed.
func (d *watchdog) run(done <-chan struct{}, look func(now time.Time)) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		if d.active.Load() == 0 {
			ticker.Stop()
			select {
			case <-done:
				return
			case <-d.wake:
			}
			ticker.Reset(tick)
		}
		select {
		case <-done:
			return
		case now := <-ticker.C:
			look(now)
		}
	}
}
