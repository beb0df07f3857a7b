package isolates

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// tick is the interval at which the watchdog checks. A limit may be exceeded by this much.
const tick = 5 * time.Millisecond

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

// awayTurn is a turn that is away.
type awayTurn struct {
	*watch
	from *thread
	of   *run
}

// awayTurns are the turns of a process that are away. The watchdog owns them.
type awayTurns struct {
	list []awayTurn
	most int // may be away at once
}
