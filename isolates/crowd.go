package isolates

import (
	"slices"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// Contexts of an owner share isolates for as long as there is little in them: what a context costs is then 0.35 MB, and 1.3 MB in an isolate of
// its own. A run may take all of its limit beside what the others in its isolate have, and pays, when V8 collects garbage, for the marking of what
// they have. So that is kept small (docs/adr/0023).
const (
	// crowdBytes is what the contexts of an isolate may have beside the one that runs, or a quarter of the limit if that is less.
	crowdBytes = 16 << 20
	// mostCollected is how large an isolate may be for its garbage to be collected between runs: that holds its thread for about a millisecond for each
	// MB that lives.
	mostCollected = 48 << 20
	// othersStep is in what steps V8 is told what the others in an isolate have.
	othersStep = 1 << 20
)

// crowd is what all but one of the contexts in the isolate may have.
func (iso *isolate) crowd() int64 { return min(crowdBytes, int64(iso.heapMB)<<20/4) }

// others is about what is in the isolate of a context that is not its own.
func (g *guest) others() int64 {
	if len(g.isolate.guests) == 1 {
		return 0
	}
	return max(0, g.isolate.heap-g.size)
}

// look notes how large an isolate is. What that has become more is taken for the context's that was in it.
func (t *thread) look(iso *isolate, g *guest, now time.Time, every time.Duration) {
	before := iso.heap
	t.tally.sampleHeap(iso, now, every)
	switch {
	case iso.heap > before && g != nil:
		g.size += iso.heap - before
	case iso.heap < before: // garbage of whomever
		for _, g := range iso.guests {
			g.size = int64(float64(g.size) * float64(iso.heap) / float64(before))
		}
	}
}

// hasRoom reports whether the isolate may have one context more.
func (t *thread) hasRoom(iso *isolate) bool {
	if len(iso.guests) >= t.pool.cfg.ContextsPerIsolate {
		return false
	}
	t.look(iso, nil, time.Now(), 0)
	return len(iso.guests) == 0 || iso.heap <= iso.crowd()
}

// stays reports whether the idle context may run where it is. Where the others have too much, for all that is known, their garbage is collected: before the
// run, so that it is not the run's.
func (t *thread) stays(g *guest) bool {
	iso := g.isolate
	if iso.mode == events.Persistent || g.others() <= iso.crowd() {
		return true
	}
	t.look(iso, g, time.Now(), 0)
	return g.others() <= iso.crowd() || t.collect(iso) && g.others() <= iso.crowd()
}

// collect frees garbage in an isolate, and is false when that would take long, or has been done since there was as much.
func (t *thread) collect(iso *isolate) bool {
	if iso.heap > mostCollected || iso.heap-iso.collected < iso.crowd()/4 {
		return false
	}
	began := ownCPU()
	iso.v8.Collect()
	t.collecting += ownCPU() - began
	t.tally.collections.Add(1)
	if iso.v8.Flags()&v8x.HeapLimit != 0 { // nothing can run in it any more
		t.interrupt(iso)
		return false
	}
	t.look(iso, nil, time.Now(), 0)
	iso.collected = iso.heap
	return true
}

// thin closes the idle contexts of an isolate that were used the longest ago, half of them, and is false when there is none, or it would be in vain.
func (t *thread) thin(iso *isolate) bool {
	if iso.heap > mostCollected {
		return false
	}
	idle := slices.DeleteFunc(slices.Clone(iso.guests), func(g *guest) bool { return len(g.runs) > 0 })
	slices.SortFunc(idle, func(a, b *guest) int { return a.used.Compare(b.used) })
	for _, g := range idle[:(len(idle)+1)/2] {
		iso.collected = max(0, iso.collected-g.size) // there is as much to collect
		t.tally.discards.inc(discardRoom)
		t.dropGuest(g)
	}
	return len(idle) > 0
}

// idlestGuest is the idle context that was used the longest ago of those isolates that have room for another in its place.
func (t *thread) idlestGuest(isolates []*isolate) (oldest *guest) {
	for _, iso := range isolates {
		if iso.heap > iso.crowd() {
			continue
		}
		for _, g := range iso.guests {
			if len(g.runs) == 0 && (oldest == nil || g.used.Before(oldest.used)) {
				oldest = g
			}
		}
	}
	return oldest
}

// leastCrowded is where a context goes that has room nowhere, so that an owner at its share does not wait for what it has under way: a run in it may have to
// run again. It is nil where there are as many contexts as there may be.
func (t *thread) leastCrowded(isolates []*isolate) (least *isolate) {
	for _, iso := range isolates {
		if !iso.closed && len(iso.guests) < t.pool.cfg.ContextsPerIsolate && (least == nil || iso.heap < least.heap) {
			least = iso
		}
	}
	return least
}

// dropOutdated closes contexts of other versions of w that have had no event for a while: contexts are many, and these will hardly have another.
func (t *thread) dropOutdated(w *events.Worker, now time.Time) {
	t.dropContexts(w.Owner, discardRoom, func(g *guest) bool {
		return g.worker.Name == w.Name && !sameVersion(g.worker, w) && now.Sub(g.used) > outdated
	})
}

// dropContexts closes those idle contexts of an owner, but for persistent ones, of which which is true.
func (t *thread) dropContexts(owner, why string, which func(*guest) bool) {
	for _, iso := range t.isolates[owner] {
		if iso.away || iso.mode == events.Persistent {
			continue
		}
		for _, g := range slices.Clone(iso.guests) {
			if len(g.runs) == 0 && which(g) {
				t.tally.discards.inc(why)
				t.dropGuest(g)
			}
		}
	}
}

// tellOthers has V8 know what of the isolate is not the context's, before that is entered.
func (iso *isolate) tellOthers(g *guest) {
	others := min((g.others()+othersStep-1)&^(othersStep-1), iso.crowd())
	if others != iso.others {
		iso.others = others
		iso.v8.SetOthers(uint64(others))
	}
}

// crowdedOut reports whether a run that reached the heap limit had less than that to itself: others in its isolate, which have begun since, took
// more than they may have at its beginning. It runs again, and in an isolate of its own if that happens again.
func (r *run) crowdedOut() bool {
	return r.attempt.Event != nil && !r.ground && r.guest.others() > r.guest.isolate.crowd()
}

// evens reports whether an owner has its even share among those that have isolates: of the thread's isolates, or the process's, or of the heap.
func (t *thread) evens(owner string) bool {
	cfg := &t.pool.cfg
	isolates, bytes := t.pool.ownerUse(owner)
	owners := t.pool.owners()
	return len(t.isolates[owner])*len(t.isolates) >= t.maxIsolates ||
		isolates*owners >= int64(cfg.MaxIsolates-cfg.spares()) || bytes*owners >= int64(cfg.HeapMB)<<20
}

// owners is about how many owners have isolates: as many as have some on one thread, or among those that no thread has.
func (p *Pool) owners() (most int64) {
	count := func(c *tally) {
		c.mu.Lock()
		defer c.mu.Unlock()
		most = max(most, int64(len(c.owners)))
	}
	for i := range p.threads {
		count(&p.threads[i].Load().tally)
	}
	count(&p.commons.tally)
	return most
}

// evictFor closes an idle isolate of this thread to make room for one of owner. One that has its even share loses one of its own, if it has an idle one.
func (t *thread) evictFor(owner string) bool {
	return t.evens(owner) && t.send(idlest(nil, t.isolates[owner])) || t.evictGreedy()
}

// evictAnyFor is evictFor where one of those will do, too, that no thread has.
func (t *thread) evictAnyFor(owner string) bool {
	return t.evens(owner) && t.evictOf(owner) || t.evictShared("") || t.evictGreedy()
}

// evictGreedy closes the isolate that has been idle the longest of those owners who have more than one and their even share of this thread, else of all.
func (t *thread) evictGreedy() bool {
	var oldest *isolate
	owners, heap := len(t.isolates), int64(t.pool.cfg.HeapMB)<<20/int64(len(t.pool.threads))
	for _, list := range t.isolates {
		if len(list) > 1 && (len(list)*owners >= t.maxIsolates || list[0].tally.heap.Load()*int64(owners) >= heap) {
			oldest = idlest(oldest, list)
		}
	}
	return t.send(oldest) || t.evict()
}
