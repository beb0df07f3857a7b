package isolates

import (
	"bytes"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/lib/guard"
	"github.com/pinwheel-run/pinwheel/internal/process/crashnote"
	"github.com/pinwheel-run/pinwheel/isolates/inbox"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
	"golang.org/x/sys/unix"
)

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

// lateAtLast is how long a turn that uses almost no CPU time may continue after the wall-clock limit. A short turn ends
// earlier. Its run is then ended without a kill, which would end everything in its context.
const lateAtLast = 50 * tick

// lateCheck is how long after the one before it a check is late: the watchdog slept, or the machine did not run it.
const lateCheck = 4 * tick

// shortTurn is a time in which the system hardly ever runs something else in the middle of a turn.
const shortTurn = time.Millisecond

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
	if r.attempt.Cancelled() && !r.betweenEvents {
		w.endAt(now.Add(cancelGrace))
	}
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

// cpuSince returns the CPU time that the thread can have used since start, outside a turn. Owner thread only.
func (w *watch) cpuSince(start time.Time) time.Duration {
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

// ended reports whether the turn is over.
func (w *watch) ended() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.isolate == nil
}

// threadCPU returns the CPU time that a thread has used (clock_getcpuclockid(3): the id of another thread's clock).
func threadCPU(tid int) time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^tid<<3|6), &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// V8 ends a turn that is killed at its next check for termination. Some of its work has no such check until it is done.
// That may end soon: a string is made flat, JSON is parsed. Or never:
// Array.prototype.indexOf.call({ length: 2 ** 53 - 1 }, 1). Only CPU time that the thread has used since the kill tells
// them apart. A thread that the system does not run uses none (docs/development/adr/0050).
const (
	// overstaysAfter is the CPU time after a kill from which a turn overstays: it goes away, whether others wait or
	// not, and its owner starts nothing until it is over.
	overstaysAfter = 150 * time.Millisecond
	// lostAfter is the CPU time after a kill from which the thread counts as lost. All work of V8 that ends within the
	// limits of memory takes less.
	lostAfter = 5 * time.Second
	// A thread in V8 that waits for something uses no CPU time, and nothing may ever wake it. It counts as lost when it
	// sleeps at asleepChecks checks in succession, beginning asleepAfter after the kill.
	asleepAfter  = 5 * time.Second
	asleepChecks = 200
)

// turnStay says how long a killed turn has stayed in V8.
type turnStay uint8

const (
	stayShort   turnStay = iota // or it is not killed
	stayLong                    // longer than most work of V8
	stayForever                 // longer than all work of V8 that ends
)

// stay returns how long the turn has stayed after its kill. last is lostAfter, except in tests. Watchdog only.
func (w *watch) stay(now time.Time, last time.Duration) turnStay {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.isolate == nil || w.grace == 0 {
		return stayShort
	}
	if guard.NativeWork.Off() {
		last = overstaysAfter
	}
	used := threadCPU(w.tid) - w.killCPU
	if now.Sub(w.killedAt) > asleepAfter {
		if w.asleep++; !sleeps(w.tid) {
			w.asleep = 0
		}
	}
	switch {
	case used > last, used > overstaysAfter && w.killed == stopped, w.asleep > asleepChecks:
		return stayForever
	case used > overstaysAfter:
		return stayLong
	}
	return stayShort
}

// sleeps reports whether a thread waits for something, and not for a processor.
func sleeps(tid int) bool {
	text, err := os.ReadFile("/proc/self/task/" + strconv.Itoa(tid) + "/stat")
	if err != nil {
		return false
	}
	_, state, _ := bytes.Cut(text, []byte(") ")) // the name of the thread has no parenthesis
	return len(state) > 0 && state[0] == 'S'
}

// giveUp returns the cause, once, and sets lost, if the turn is still in V8. From then on the watchdog owns the
// thread's state. The thread checks lost before it touches anything, and waits until it is replaced.
func (w *watch) giveUp(lost *atomic.Bool) *lossCause {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.isolate == nil || w.grace == 0 || !lost.CompareAndSwap(false, true) {
		return nil
	}
	switch {
	case w.killed == stopped:
		return &lossCause{w.run, w.start, &events.Failure{Reason: stopped}}
	case w.isolate.Flags()&v8x.HeapLimit != 0:
		return &lossCause{w.run, w.start, w.run.memoryFailure()}
	case w.killed == events.ReasonTimeout:
		return &lossCause{w.run, w.start, w.run.wallFailure()}
	}
	return &lossCause{w.run, w.start, w.run.cpuFailure()}
}

// lossCause is the run for which a thread was in V8 when it was lost, and the failure. run is nil if the thread was in
// V8 for no run.
type lossCause struct {
	run  *run
	turn time.Time // when that turn began
	why  *events.Failure
}

// parked returns the cause of the loss of a thread that V8 has parked.
func (w *watch) parked() *lossCause {
	w.mu.Lock()
	defer w.mu.Unlock()
	return &lossCause{w.run, w.start, parkedFailure()}
}

// parkedFailure is the failure of the attempt that made V8 give up a thread.
func parkedFailure() *events.Failure {
	return events.Fail(events.ReasonMemory, "V8 could not go on: a single value was too large")
}

// step is the kind of a turn. It determines what follows the turn.
type step uint8

const (
	stepCall   step = iota // calls the entry function for the run
	stepModule             // evaluates the module
	stepEnded              // reports to a persistent context which runs are over; nothing follows
)

// endedTurn is a turn that has ended.
type endedTurn struct {
	run        *run
	step       step
	start, end time.Time
	result     v8x.Result
	cpu        time.Duration
	killed     events.Reason
}

// returnedTurn is a turn that was away and has ended. lost: it was given up.
type returnedTurn struct {
	endedTurn
	lost bool
}

// threadInbox has what other goroutines hand to a thread. A call without a run is for the thread itself.
type threadInbox = inbox.Inbox[queuedCall, returnedTurn]
