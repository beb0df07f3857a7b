package isolates

import (
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// Runaway threads use a whole processor until they come back, if they ever do. With the lowest priority they do not
// delay other threads on this machine, but they can use up the CPU quota of a container. Those that continue are
// throttled: stopped for most of the time.
const (
	runawayNice   = 19                        // the lowest priority
	throttleAfter = 2 * time.Second           // CPU time of a runaway before it is throttled; most are back by then
	throttleEvery = v8x.ThrottleTime + 2*tick // leaves it a twentieth of a processor
)

// runaways are the threads whose turn V8 did not end in time and that are not back.
type runaways struct {
	mu   sync.Mutex
	list []runaway
	next time.Time // when they are throttled again
	nice int       // runawayNice, except in tests

	throttled uint64 // how often one was; for tests
}

type runaway struct {
	*watch
	tid int
	cpu time.Duration // of the thread when it became a runaway
}

// add records a runaway thread and lowers its priority. Watchdog only.
func (s *runaways) add(w *watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if tid := w.pinned(); !w.back {
		s.list = append(s.list, runaway{w, tid, threadCPU(tid)})
		_ = unix.Setpriority(unix.PRIO_PROCESS, tid, s.nice) // never reset: the OS thread ends when it is back
	}
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
func (s *runaways) throttle(now time.Time, after time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.list) == 0 || now.Before(s.next) {
		return
	}
	s.next = now.Add(throttleEvery)
	for _, x := range s.list {
		if threadCPU(x.tid)-x.cpu > after {
			v8x.Throttle(x.tid)
			s.throttled++
		}
	}
}
