package isolates

import (
	"slices"
	"sync"
	"time"

	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// Threads that strayed burn a processor until they come back, if they ever do. The lowest priority keeps them from
// being in the way of others on this machine, but not from using up what a container may have: the ones that burn on
// are held for most of the time.
const (
	holdAfter = 2 * time.Second       // CPU time of a stray before it is held; most are back by then
	holdEvery = v8x.HoldTime + 2*tick // which leaves it a twentieth
)

// strays is the threads that V8 did not let go, and that are not back.
type strays struct {
	mu   sync.Mutex
	list []stray
	next time.Time // when they are to be held again
}

type stray struct {
	*watch
	tid int
	cpu time.Duration // of the thread when it had strayed
}

// add is for the watchdog.
func (s *strays) add(w *watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if tid := w.pinned(); !w.back {
		s.list = append(s.list, stray{w, tid, threadCPU(tid)})
	}
}

// remove is for the thread itself when it is back, before it does anything else: nobody holds it from then on.
func (s *strays) remove(w *watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.back = true
	s.list = slices.DeleteFunc(s.list, func(x stray) bool { return x.watch == w })
}

// hold holds those that have burnt enough. Watchdog only, each round.
func (s *strays) hold(now time.Time, after time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.list) == 0 || now.Before(s.next) {
		return
	}
	s.next = now.Add(holdEvery)
	for _, x := range s.list {
		if threadCPU(x.tid)-x.cpu > after {
			v8x.Hold(x.tid)
		}
	}
}
