package isolates

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/isolates/offload"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// Contexts of a tenant share isolates while they are small. Such a context costs 0.35 MB. In its own isolate it costs
// 1.3 MB. A run may use all of its limit, in addition to what the other contexts in its isolate have. When V8 collects
// garbage, the run pays for marking what they have. So that is kept small (docs/development/adr/0023).
const (
	// crowdBytes bounds what the other contexts of an isolate may have, beside the one that runs. The bound is a
	// quarter of the limit if that is less.
	crowdBytes = 16 << 20
	// mostCollected is the largest isolate whose garbage is collected between runs. A collection holds the thread for
	// about a millisecond per MB of live data.
	mostCollected = 48 << 20
	// othersStep is the unit in which V8 gets the size of the other contexts in an isolate.
	othersStep = 1 << 20
)

// crowd bounds what all contexts but one in the isolate may have.
func (iso *isolate) crowd() int64 { return min(crowdBytes, int64(iso.heapMB)<<20/4) }

// others estimates what the other contexts in the isolate of jc have, in bytes.
func (jc *jsContext) others() int64 {
	if len(jc.isolate.contexts) == 1 {
		return 0
	}
	return max(0, jc.isolate.heap-jc.size)
}

// look measures an isolate. Growth since the last look is attributed to the context that ran last.
func (h *heaps) look(iso *isolate, now time.Time, every time.Duration) {
	before := iso.heap
	h.counters.sampleHeap(iso, now, every)
	switch {
	case iso.heap > before && iso.latest != nil:
		iso.latest.size += iso.heap - before
	case iso.heap < before: // garbage, of any of the contexts
		for _, jc := range iso.contexts {
			jc.size = int64(float64(jc.size) * float64(iso.heap) / float64(before))
		}
	}
}

// lookBefore measures an isolate before jc enters it, if another context has run in it since the last look, long enough
// to have grown by an amount that matters. Without this look, that growth would be attributed to jc.
func (h *heaps) lookBefore(jc *jsContext) {
	iso := jc.isolate
	if iso.latest != jc && iso.unmeasured > lookBetween {
		h.look(iso, time.Now(), 0)
	}
}

// hasRoom reports whether the isolate may have one more context.
func (h *heaps) hasRoom(iso *isolate) bool {
	if len(iso.contexts) >= h.pool.cfg.ContextsPerIsolate {
		return false
	}
	if iso.unmeasured > 0 { // something has run in it since
		h.look(iso, time.Now(), 0)
	}
	return len(iso.contexts) == 0 || iso.heap <= iso.crowd()
}

// stays reports whether the idle context may run where it is. If the other contexts seem to have too much, their
// garbage is collected before the run, so that the run does not pay for it.
func (h *heaps) stays(jc *jsContext) bool {
	iso := jc.isolate
	h.lookBefore(jc)
	if iso.mode == events.Persistent || jc.others() <= iso.crowd() {
		return true
	}
	h.look(iso, time.Now(), 0)
	return jc.others() <= iso.crowd() || h.collect(iso) && jc.others() <= iso.crowd()
}

// collect frees garbage in an isolate. It returns false when that would take long, or when the heap is little larger
// than after the last collection.
func (h *heaps) collect(iso *isolate) bool {
	if iso.heap > mostCollected || iso.heap-iso.collected < iso.crowd()/4 {
		return false
	}
	began := offload.CPU()
	iso.v8.Collect()
	h.collecting += offload.CPU() - began
	h.counters.collections.Add(1)
	if iso.v8.Flags()&v8x.HeapLimit != 0 { // nothing can run in it any more
		h.runs.interrupt(iso)
		return false
	}
	h.look(iso, time.Now(), 0)
	iso.collected = iso.heap
	return true
}

// thin closes half of an isolate's idle contexts: those that were used longest ago. It returns false when there is
// none, or when the isolate is too large.
func (h *heaps) thin(iso *isolate) bool {
	if iso.heap > mostCollected {
		return false
	}
	idle := slices.DeleteFunc(slices.Clone(iso.contexts), func(jc *jsContext) bool { return len(jc.runs) > 0 })
	slices.SortFunc(idle, func(a, b *jsContext) int { return a.used.Compare(b.used) })
	for _, jc := range idle[:(len(idle)+1)/2] {
		iso.collected = max(0, iso.collected-jc.size) // the closed context left that much to collect
		h.counters.discarded(jc, discardRoom)
		h.dropContext(jc)
	}
	return len(idle) > 0
}

// idlestContext returns the idle context that was used longest ago. It considers only isolates that have room for
// another context in its place.
func idlestContext(isolates []*isolate) (oldest *jsContext) {
	for _, iso := range isolates {
		if iso.heap > iso.crowd() {
			continue
		}
		for _, jc := range iso.contexts {
			if len(jc.runs) == 0 && (oldest == nil || jc.used.Before(oldest.used)) {
				oldest = jc
			}
		}
	}
	return oldest
}

// leastCrowded returns the isolate for a context that has no room anywhere. So an owner at its share does not wait for
// its own runs. A run in that isolate may have to run again. It returns nil if each isolate has most contexts.
func leastCrowded(isolates []*isolate, most int) (least *isolate) {
	for _, iso := range isolates {
		if !iso.closed && len(iso.contexts) < most && (least == nil || iso.heap < least.heap) {
			least = iso
		}
	}
	return least
}

// contextsOf returns the contexts that an owner has in the isolates.
func contextsOf(owner string, isolates []*isolate) (list []*jsContext) {
	for _, iso := range isolates {
		for _, jc := range iso.contexts {
			if jc.worker.Owner == owner {
				list = append(list, jc)
			}
		}
	}
	return list
}

// vacate closes those of a tenant's contexts that are idle, and its isolates that have no contexts then.
func (h *heaps) vacate(tenant, why string, contexts []*jsContext) {
	h.dropContexts(contexts, why, func(*jsContext) bool { return true })
	for _, iso := range slices.Clone(h.isolates[tenant]) {
		if len(iso.contexts) == 0 && !iso.away {
			h.dropIsolate(iso)
		}
	}
}

// dropContexts closes those of the contexts that are idle and for which which returns true, except persistent ones.
func (h *heaps) dropContexts(contexts []*jsContext, why string, which func(*jsContext) bool) {
	for _, jc := range slices.Clone(contexts) {
		if len(jc.runs) == 0 && !jc.isolate.away && jc.isolate.mode != events.Persistent && which(jc) {
			h.counters.discarded(jc, why)
			h.dropContext(jc)
		}
	}
}

// setOthers passes the size of the other contexts in the isolate to V8, before jc is entered.
func (iso *isolate) setOthers(jc *jsContext) {
	others := min((jc.others()+othersStep-1)&^(othersStep-1), iso.crowd())
	if others != iso.setToOthers {
		iso.setToOthers = others
		iso.v8.SetOthers(uint64(others))
	}
}

// crowdedOut reports whether a run that reached the heap limit had less than that limit for itself. Other contexts in
// its isolate, whose runs have begun since, took more than they may have at its beginning. The run is repeated, and in
// its own isolate if that happens again.
func (r *run) crowdedOut() bool {
	return r.attempt.Event != nil && !r.betweenEvents && r.context.others() > r.context.isolate.crowd()
}

// evens reports whether a tenant has at least an even share among the tenants that have isolates: of the thread's
// isolates, of the process's isolates, or of the heap.
func (h *heaps) evens(tenant string) bool {
	cfg := &h.pool.cfg
	isolates, bytes := h.pool.use(tenant)
	tenants := h.pool.tenants()
	return len(h.isolates[tenant])*len(h.isolates) >= h.maxIsolates ||
		isolates*tenants >= int64(cfg.MaxIsolates-cfg.prewarmed()) || bytes*tenants >= int64(cfg.HeapMB)<<20
}

// tenants estimates how many tenants have isolates. It is the largest number of them on one thread, or among the
// isolates that no thread has.
func (p *Pool) tenants() (most int64) {
	count := func(c *counters) {
		c.mu.Lock()
		defer c.mu.Unlock()
		most = max(most, int64(len(c.tenants)))
	}
	for i := range p.threads {
		count(&p.threads[i].Load().heaps.counters)
	}
	count(&p.shared.counters)
	return most
}

// evictFor closes an idle isolate of this thread to make room for one of tenant. A tenant that has its even share loses
// one of its own, if it has an idle one.
func (h *heaps) evictFor(tenant string) bool {
	return h.evens(tenant) && h.send(idlest(nil, h.isolates[tenant])) || h.evictGreedy()
}

// evictAnyFor is like evictFor, but it may also close an isolate that no thread has.
func (h *heaps) evictAnyFor(tenant string) bool {
	return h.evens(tenant) && h.evictOf(tenant) || h.evictShared("") || h.evictGreedy()
}

// evictGreedy closes the isolate that has been idle longest. It prefers tenants that have more than one isolate and at
// least their even share of this thread. If there is none, it considers all.
func (h *heaps) evictGreedy() bool {
	var oldest *isolate
	tenants, heap := len(h.isolates), int64(h.pool.cfg.HeapMB)<<20/int64(len(h.pool.threads))
	for _, list := range h.isolates {
		if len(list) > 1 && (len(list)*tenants >= h.maxIsolates || list[0].counters.charged.Load()*int64(tenants) >= heap) {
			oldest = idlest(oldest, list)
		}
	}
	return h.send(oldest) || h.evict()
}

// An isolate that has run something and then rests keeps garbage, and code that it may not need again: 2.2 MB where 1.2
// are enough. A thread that has nothing to do frees it, one isolate after the other, so that new work waits for one
// collection at most. Isolates of mode shared that no thread has now are left out.
const (
	// collectAfter is how long an isolate rests until its garbage is collected, and flushAfter until it gives up code
	// and feedback too. It gets these back when it runs: the next thousand calls cost twice as much.
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
	nudge func() // wakes the thread

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
			s.nudge()
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
	began := offload.CPU()
	s.collectFor(iso)
	all.next = now.Add(restShare * (offload.CPU() - began))
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
	if iso.v8.Flags()&v8x.HeapLimit != 0 { // nothing can run in it any more
		h.runs.interrupt(iso)
		return
	}
	h.look(iso, time.Now(), 0)
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
