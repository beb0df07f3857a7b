package isolates

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/process/crashnote"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// tick is the interval at which the watchdog checks. A limit may be exceeded by this much.
const tick = 5 * time.Millisecond

// lateAtLast is how long a turn that uses almost no CPU time may continue after the wall-clock limit. A short turn ends
// earlier. Its run is then ended without a kill, which would end everything in its context.
const lateAtLast = 50 * tick

// lateCheck is how long after the one before it a check is late: the watchdog slept, or the machine did not run it.
const lateCheck = 4 * tick

// shortTurn is a time in which the system hardly ever runs something else in the middle of a turn.
const shortTurn = time.Millisecond

// watch is the watchdog's view of one thread: the turn that the thread is in. A turn is one stay in V8. isolate is set
// only during a turn, so under mu it says whether there is something to terminate. A comment says who uses a
// field that mu does not guard.
type watch struct {
	mu        sync.Mutex
	turn      uint64       // number of the current or latest turn
	fixed     bool         // the turn may not go away
	away      bool         // the turn has left its thread and continues; it is the last on this watch
	lost      atomic.Bool  // a turn that is away was given up
	back      bool         // the thread ran away and is back; guarded by runaways.mu
	run       *run         // the run for which the thread is in V8
	isolate   *v8x.Isolate // nil between turns
	tid       int          // of the OS thread
	start     time.Time
	cpuLeft   time.Duration // CPU time the turn may use
	deadline  time.Time     // wall-clock limit
	killed    events.Reason // why the watchdog ended the turn, "" if it did not
	grace     int           // checks since it was killed
	killedAt  time.Time
	killCPU   time.Duration // the thread's CPU clock at killedAt
	asleep    int           // checks in succession, long after the kill, at which the thread slept
	ownerHeld bool          // the source was told that the turn overstays. Watchdog only

	// Set at the watchdog's first check of the turn: the thread's CPU clock at that time, and the most that the turn
	// had used (soFar). Of a turn that took at most shortTurn and was never checked, the wall time counts as CPU time,
	// which saves reading the thread's clock, a system call.
	sampled bool
	cpuThen time.Duration
	before  time.Duration
	seen    time.Duration // the thread's CPU clock at the latest check, in a turn or not
	looked  time.Time     // when that was

	slot *crashnote.Slot // names the worker for which the thread is in V8, to be read after a crash. Owner thread only
}

// newWatch returns the watch of a goroutine that begins to run as a thread.
func newWatch(note *crashnote.Note) *watch { return &watch{slot: note.Slot()} }

// pin records the thread that is watched: the calling one.
func (w *watch) pin(tid int) {
	w.slot.Bind()
	w.mu.Lock()
	w.tid, w.seen, w.looked = tid, threadCPU(tid), time.Now()
	w.mu.Unlock()
}

// pinned returns the thread that is watched, or 0 before it has started.
func (w *watch) pinned() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.tid
}

// begin opens a turn of r. Owner thread only.
func (w *watch) begin(r *run, now time.Time, fixed bool) {
	w.slot.Enter(r.attempt.Worker)
	w.mu.Lock()
	w.turn++
	w.fixed = fixed
	w.run, w.isolate, w.start, w.cpuLeft, w.deadline = r, r.context.isolate.v8, now, r.cpuLeft, r.wall
	w.killed, w.grace, w.sampled, w.asleep = "", 0, false, 0
	w.mu.Unlock()
}

// end closes the turn and returns the CPU time it took and why it was killed, if it was. After end
// the watchdog can no longer terminate the isolate. Owner thread only.
func (w *watch) end(now time.Time) (cpu time.Duration, killed events.Reason) {
	w.slot.Leave()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.run, w.isolate = nil, nil
	if !w.sampled {
		if wall := now.Sub(w.start); wall <= shortTurn {
			return wall, w.killed
		}
	}
	return w.used(now, threadCPU(w.tid)), w.killed
}

// used returns the CPU time of the turn when the thread's clock shows cpu.
func (w *watch) used(now time.Time, cpu time.Duration) time.Duration {
	if !w.sampled {
		return w.soFar(w.start, now, cpu)
	}
	return w.before + cpu - w.cpuThen
}

// soFar returns the most CPU time that the thread can have used since start, when something began that was not checked
// yet. That is at most the time that passed, and at most what the thread has used since the latest check. On a busy
// machine the second is far less. The result is 0 for something that began after the watchdog last read the time.
//
// If the latest check is long ago, the thread may have used most of that for something else before, and what began then
// only waited for a processor. Then soFar returns what it must have used since start, or two ticks if that is more.
func (w *watch) soFar(start, now time.Time, cpu time.Duration) time.Duration {
	since := cpu - w.seen
	most := max(0, min(now.Sub(start), since))
	if now.Sub(w.looked) <= lateCheck {
		return most
	}
	return min(most, max(since-start.Sub(w.looked), 2*tick))
}

// spent returns the CPU time that the thread can have used since start, outside a turn. Owner thread only.
func (w *watch) spent(start time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.soFar(start, time.Now(), threadCPU(w.tid))
}

// check checks the turn against its limits and terminates it when it exceeds one. Watchdog only.
func (w *watch) check(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.tid == 0 {
		return
	}
	cpu := threadCPU(w.tid)
	defer func() { w.seen, w.looked = cpu, now }()
	if w.isolate == nil {
		return
	}
	if !w.sampled {
		w.sampled, w.cpuThen, w.before = true, cpu, w.soFar(w.start, now, cpu)
	}
	if w.killed == "" {
		switch {
		case w.used(now, cpu) > w.cpuLeft:
			w.killed = events.ReasonCPU
		case now.After(w.deadline) && (cpu-w.cpuThen > tick || now.Sub(w.deadline) > lateAtLast):
			w.killed = events.ReasonTimeout
		}
	}
	// Request termination again: code that cannot be interrupted may have swallowed the first request.
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

// stopped is the reason for ending a turn when the pool closes. It is not a failure of an event.
const stopped events.Reason = "stopped"

// kill marks the current turn, if any, for termination at the next look. Watchdog only.
func (w *watch) kill(why events.Reason) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.isolate == nil || w.run.betweenEvents { // onTerminate has its own limits
		return
	}
	if w.killed == "" || w.grace > 20 && w.killed != why { // the pool does not wait for a turn that overstays
		w.killed, w.grace = why, 0
	}
}

// attribute records the run for which the thread enters V8 before there is an isolate to watch. Owner thread only.
func (w *watch) attribute(r *run) {
	if r == nil {
		w.slot.Leave()
	} else {
		w.slot.Enter(r.attempt.Worker)
	}
	w.mu.Lock()
	w.run = r
	w.mu.Unlock()
}

// threadCPU returns the CPU time that a thread has used (clock_getcpuclockid(3): the id of another thread's clock).
func threadCPU(tid int) time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^tid<<3|6), &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// RunDelays appends, for each pinned thread except those of Background, how long it has been runnable so far but waited
// for a processor. Any goroutine may call it. The value is 0 for a thread that cannot be queried.
// https://docs.kernel.org/scheduler/sched-stats.html#proc-pid-schedstat
func (p *Pool) RunDelays(into []time.Duration) []time.Duration {
	for i := range p.cfg.Threads {
		into = append(into, runDelay(p.threads[i].Load().tid.Load()))
	}
	return into
}

// runDelay returns the second number of a thread's schedstat, in nanoseconds.
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
	active  atomic.Int64  // threads that are not asleep
	wake    chan struct{} // capacity 1; has a value if a thread woke when all were asleep
	threads int           // that may be in V8 at once
	nap     func()        // sleeps for a tick in a system call
}

func newWatchdog(threads int) watchdog {
	return watchdog{wake: make(chan struct{}, 1), threads: threads, nap: func() {
		ts := unix.NsecToTimespec(int64(tick))
		_ = unix.Nanosleep(&ts, nil) // a signal may end it early
	}}
}

// awake and asleep record that a thread works or sleeps.
func (d *watchdog) awake() {
	if d.active.Add(1) == 1 {
		select {
		case d.wake <- struct{}{}:
		default:
		}
	}
}

func (d *watchdog) asleep() { d.active.Add(-1) }

// woke reports whether a thread woke, when all were asleep, since it was last called.
func (d *watchdog) woke() bool {
	select {
	case <-d.wake:
		return true
	default:
		return false
	}
}

// run checks every thread at each tick while any thread works, until done is closed.
func (d *watchdog) run(done <-chan struct{}, look func(now time.Time)) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for short := 0; ; { // rests in succession that were short
		if d.woke(); d.active.Load() == 0 {
			ticker.Stop()
			since := time.Now()
			select {
			case <-done:
				return
			case <-d.wake:
			}
			if short++; time.Since(since) >= often {
				short = 0
			}
			if short >= enough && d.mayKeepAwake() {
				d.keepAwake(done, look)
				short = 0
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

const (
	often  = 8 * tick // threads wake often if all of them sleep for less than this
	enough = 4        // and if that happens so many times in succession: an event may wake two threads
)

// keepAwake is run while all threads sleep and wake often. It does not stop between events, and it sleeps in a system
// call. So one of Go's processors is always in use, and Go's sysmon does not sleep for long. Otherwise each event wakes
// sysmon, which then looks at all processors every 20 µs until they are idle again. That takes a quarter of the CPU
// time of a process at 200 events/s (docs/development/performance.md).
func (d *watchdog) keepAwake(done <-chan struct{}, look func(now time.Time)) {
	for quiet := time.Duration(0); quiet < often; quiet += tick {
		select {
		case <-done:
			return
		default:
		}
		if d.woke() {
			quiet = 0
		}
		d.nap()
		runtime.Gosched() // sysmon takes the processor of a goroutine that does not yield for 10 ms
		if d.active.Load() > 0 {
			look(time.Now())
		}
	}
}

// mayKeepAwake reports whether there is one more of Go's processors than the pinned threads in V8 and the watchdog can
// keep. With fewer, other goroutines would have to wait until sysmon notices. Background threads do not count: they
// work for long, and then threads do not wake often.
func (d *watchdog) mayKeepAwake() bool { return runtime.GOMAXPROCS(0) >= d.threads+2 }
