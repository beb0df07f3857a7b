package isolates

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pinwheel-run/pinwheel/internal/lib/perowner"
	"github.com/pinwheel-run/pinwheel/isolates/codecache"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// collect frees garbage in an isolate. It returns false when that would take long, or when the heap is little larger
// than after the last collection.
func (h *heaps) collect(iso *isolate) bool {
	if iso.heap > mostCollected || iso.heap-iso.collected < iso.othersLimit()/4 {
		return false
	}
	began := perowner.ThreadTime()
	iso.v8.Collect()
	h.collecting += perowner.ThreadTime() - began
	h.counters.collections.Add(1)
	if iso.v8.Flags()&v8x.HeapLimit != 0 { // nothing more can run in it
		h.runs.interrupt(iso)
		return false
	}
	h.counters.measure(iso, time.Now(), 0)
	iso.collected = iso.heap
	return true
}

// An isolate that has run something and then rests keeps garbage, and code that it may not need again: 2.2 MB where 1.2
// are enough. A thread that has nothing to do frees it, one isolate after the other, so that new work waits for one
// collection at most. Isolates of mode shared that no thread has now are left out.
const (
	// collectAfter is how long an isolate rests until its garbage is collected, and flushCodeAfter until it gives up
	// code and feedback too. It gets these back when it runs: the next thousand calls cost twice as much.
	collectAfter   = 10 * time.Second
	flushCodeAfter = time.Minute
	// restShare limits the CPU time that collections take: one part in restShare of one processor, in each process.
	restShare = 50
	// mostAtRest is the largest isolate at rest whose garbage is collected. New work waits for a collection under way.
	mostAtRest = 8 << 20
)

// rest is how much an isolate has given back since something ran in it.
type rest uint8

const (
	restNone      rest = iota
	restCollected      // its garbage
	restFlushed        // also code and feedback
)

// rests are the collections of isolates at rest, of all threads.
type rests struct {
	collect, flush time.Duration // collectAfter and flushCodeAfter, except in tests

	mu   sync.Mutex // held during a collection: other threads stay free for work
	next time.Time  // no collection begins before this time
}

// resting collects garbage in the isolates of one thread that rest. Only the thread calls its methods.
type resting struct {
	heaps *heaps
	rests *rests
	wake  func() // wakes the thread

	waits bool        // timer is set, or has fired
	timer *time.Timer // nil until the first run has ended
	due   atomic.Bool // it is time to look for isolates that rest; any goroutine may set it
}

// await has the thread look at its isolates later, unless it will do that anyway. It is called when a run ends.
func (s *resting) await() {
	if s.waits {
		return
	}
	s.waits = true
	s.in(s.rests.collect)
}

// in sets the timer. The timer and not a timeout of thread.sleep, so that sleeping costs nothing more.
func (s *resting) in(d time.Duration) {
	if s.timer == nil {
		s.timer = time.AfterFunc(d, func() {
			s.due.Store(true)
			s.wake()
		})
		return
	}
	s.timer.Reset(d)
}

func (s *resting) stop() {
	if s.timer != nil {
		s.timer.Stop()
	}
}

// collect collects garbage in the isolate that has rested for longest, if it is due. It is called when the thread has
// nothing to do, and returns true if it did something.
func (s *resting) collect() bool {
	if !s.due.Load() {
		return false
	}
	now, all := time.Now(), s.rests
	iso, due := s.next(now)
	if iso == nil {
		s.due.Store(false)
		if s.waits = !due.IsZero(); s.waits {
			s.in(due.Sub(now))
		}
		return false
	}
	if !all.mu.TryLock() {
		s.due.Store(false)
		s.in(tick)
		return false
	}
	defer all.mu.Unlock()
	if wait := all.next.Sub(now); wait > 0 {
		s.due.Store(false)
		s.in(wait)
		return false
	}
	began := perowner.ThreadTime()
	s.collectFor(iso)
	all.next = now.Add(restShare * (perowner.ThreadTime() - began))
	s.heaps.pool.trimSoon()
	return true
}

// collectFor does the next collection of an isolate at rest.
func (s *resting) collectFor(iso *isolate) {
	h := s.heaps
	if iso.rest++; iso.rest == restCollected {
		iso.v8.Collect()
	} else {
		iso.v8.CollectGarbage()
	}
	h.counters.collections.Add(1)
	if iso.v8.Flags()&v8x.HeapLimit != 0 { // nothing more can run in it
		h.runs.interrupt(iso)
		return
	}
	h.counters.measure(iso, time.Now(), 0)
	iso.collected = iso.heap
}

// next returns the isolate in which a collection is due, the one that has rested for longest. If there is none it
// returns nil, and when one will be due; zero = never.
func (s *resting) next(now time.Time) (next *isolate, due time.Time) {
	for _, list := range s.heaps.isolates {
		for _, iso := range list {
			if iso.busy > 0 || iso.away || iso.used.IsZero() || iso.rest == restFlushed || iso.heap > mostAtRest {
				continue
			}
			at := iso.used.Add(s.rests.collect)
			if iso.rest == restCollected {
				at = iso.used.Add(s.rests.flush)
			}
			if due.IsZero() || at.Before(due) {
				next, due = iso, at
			}
		}
	}
	if due.After(now) {
		next = nil
	}
	return next, due
}

// keepAfter is the number of events of a context after which its code is kept. V8 compiles functions when they first
// run. Before the first event only the functions exist that the module's own evaluation needs. After 5 or 20 events
// there are more, but reading them all costs as much as compiling the few saves (measured with 1, 50 and 500 KB of
// code).
const keepAfter = 1

// pendingCode are the contexts of a thread whose code is to be put into the cache.
type pendingCode struct {
	cache *codecache.Cache
	list  []*jsContext
}

// noteRun records a context after a run that ended without failure.
func (u *pendingCode) noteRun(jc *jsContext) {
	if jc.uses == keepAfter && u.cache.Wants(jc.worker) {
		u.list = append(u.list, jc)
	}
}

// store keeps the code of one context. That takes milliseconds for a large module, so it runs after reports were passed
// on.
func (u *pendingCode) store(h *heaps) {
	for len(u.list) > 0 {
		jc := u.list[0]
		u.list = u.list[1:]
		if jc.isolate.away {
			u.list = append(u.list, jc)
			return
		}
		// The context may be gone, or another thread may have been faster.
		if jc.closed || !slices.Contains(h.isolates[jc.isolate.tenant], jc.isolate) || !u.cache.Wants(jc.worker) {
			continue
		}
		u.cache.Put(jc.worker, jc.v8.CodeCache())
		return
	}
}
