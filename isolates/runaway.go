package isolates

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/lib/guard"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

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

// overstay frees the thread of a turn that overstays. It returns true when the thread was replaced. Watchdog only.
func overstay(p *Pool, t *thread) (replaced bool) {
	w := t.watch
	w.mu.Lock()
	turn, fixed := w.turn, w.fixed
	w.mu.Unlock()
	if !fixed {
		p.sendAway(t, w, turn)
		return false
	}
	// The thread is in the middle of something else, for which the turn has to end. Whether it is lost is decided
	// later.
	cause := w.giveUp(&t.lost)
	if cause == nil {
		return false
	}
	holdOwner(p, w, cause.run)
	p.losses.ranAway.Add(1)
	p.losses.runaways.add(w, cause)
	p.replace(t, cause)
	return true
}

// holdOwner notifies the source, once for a turn, that a turn of r overstays.
func holdOwner(p *Pool, w *watch, r *run) {
	if r == nil || w.ownerHeld || guard.CrashSuspects.Off() {
		return
	}
	w.ownerHeld = true
	p.source.Overstays(r.attempt.Worker, true)
}

// releaseOwner notifies the source that a turn of r that overstayed is over, or that its thread is lost.
func releaseOwner(p *Pool, w *watch, r *run) {
	if w.ownerHeld {
		w.ownerHeld = false
		p.source.Overstays(r.attempt.Worker, false)
	}
}

// decideRunaways is called each round about threads that were replaced while their turns overstayed: they are back, or
// they are lost. Watchdog only.
func decideRunaways(p *Pool) {
	for _, x := range p.losses.runaways.undecided(p.losses.lostAfter - overstaysAfter) {
		if !x.came {
			p.reportLost(x.cause)
		}
		releaseOwner(p, x.watch, x.cause.run)
	}
}

// Runaway threads use a whole processor until they come back, if they ever do. With the lowest priority they do not
// delay other threads on this machine, but they can use up the CPU quota of a container. Those that continue are
// throttled: stopped for most of the time.
const (
	runawayNice   = 19                        // the lowest priority
	throttleAfter = 2 * time.Second           // CPU time of a runaway before it is throttled; most are back by then
	throttleEvery = v8x.ThrottleTime + 2*tick // leaves it a twentieth of a processor
)

// losses are the threads that V8 has kept.
type losses struct {
	parked    atomic.Int32  // by a fatal error
	ranAway   atomic.Int32  // because their turn did not end in time: runaways
	back      atomic.Int32  // runaways that have come back and ended
	lostAfter time.Duration // the constant lostAfter, except in tests
	onRunaway func(*thread) // nil except in tests: called when a thread is lost and not yet replaced
	runaways  runaways
}

// runaways are the threads whose turn V8 did not end in time and that are not back.
type runaways struct {
	mu            sync.Mutex
	list          []runaway
	open          []runaway     // of which it is not known whether they come back soon
	next          time.Time     // when they are throttled again
	nice          int           // runawayNice, except in tests
	throttleAfter time.Duration // the constant throttleAfter, except in tests

	throttled uint64 // how often one was; for tests
}

type runaway struct {
	*watch
	tid int
	cpu time.Duration // of the thread when it became a runaway
	// cause is reported if the thread does not come back soon; nil = it was reported.
	cause *lossCause
	came  bool // it came back before that was known
}

// add records a runaway thread and lowers its priority. undecided is the cause if it may come back soon, or nil.
// Watchdog only.
func (s *runaways) add(w *watch, undecided *lossCause) {
	s.mu.Lock()
	defer s.mu.Unlock()
	tid := w.pinned()
	x := runaway{w, tid, threadCPU(tid), undecided, false}
	if undecided != nil {
		s.open = append(s.open, x)
	}
	if !w.back {
		s.list = append(s.list, x)
		_ = unix.Setpriority(unix.PRIO_PROCESS, tid, s.nice) // never reset: the OS thread ends when it is back
	}
}

// undecided returns the runaways that were decided since the last call: those that are
// back, and those that have used that much CPU time. Watchdog only.
func (s *runaways) undecided(most time.Duration) (known []runaway) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = slices.DeleteFunc(s.open, func(x runaway) bool {
		if !x.back && threadCPU(x.tid)-x.cpu <= most {
			return false
		}
		x.came = x.back
		known = append(known, x)
		return true
	})
	return known
}

// remove is called by the thread itself when it is back, before it does anything else. From then on it is not
// throttled.
func (s *runaways) remove(w *watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.back = true
	s.list = slices.DeleteFunc(s.list, func(x runaway) bool { return x.watch == w })
}

// throttle stops, for a moment, the runaways that have used enough CPU time. Watchdog only, each round.
func (s *runaways) throttle(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.list) == 0 || now.Before(s.next) {
		return
	}
	s.next = now.Add(throttleEvery)
	for _, x := range s.list {
		if threadCPU(x.tid)-x.cpu > s.throttleAfter {
			v8x.Throttle(x.tid)
			s.throttled++
		}
	}
}
