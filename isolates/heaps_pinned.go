package isolates

import (
	"slices"
	"time"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

// A worker of mode pinned has a context of its own on each thread that runs its events. Mode shared places contexts in
// the same way, after it has taken an isolate from Pool.shared (heaps_shared.go).

// reuse returns a warm context of that version, or makes a new one.
func (h *heaps) reuse(w *workers.Worker, mode workers.Mode) (*jsContext, error) {
	jc := h.warm(w, mode)
	if jc == nil {
		// Contexts are many. Those of other versions that have had no event for a while are unlikely to get another.
		now := time.Now()
		h.dropContexts(h.contexts.of(w.Owner, w.Name), discardRoom, func(jc *jsContext) bool {
			return jc.outdated() || !sameVersion(jc.worker, w) && now.Sub(jc.used) > h.pool.cfg.OldVersionIdle
		})
		return h.newContextIn(h.chooseIsolate(w, mode), w, mode)
	}
	if h.mayRunHere(jc) {
		h.counters.warmHit(jc)
		return jc, nil
	}
	// Another isolate gets a context for w, if one has room. Closing this context leaves more room here.
	iso := h.chooseIsolate(w, mode)
	if !jc.closed && (iso == nil || iso == jc.isolate) {
		h.counters.warmHit(jc)
		return jc, nil
	}
	if !jc.closed {
		h.counters.discarded(jc, discardRoom)
		h.dropContext(jc)
	}
	return h.newContextIn(iso, w, mode)
}

// chooseIsolate returns an isolate for a context of w. It prefers, in this order: an isolate of the owner with room; a
// new one, if none must be closed for it; the one with the owner's context that was used longest ago, which it closes;
// a new one for which it closes idle ones. It returns nil if all are busy.
func (h *heaps) chooseIsolate(w *workers.Worker, mode workers.Mode) *isolate {
	own := h.own(w, mode)
	if i := slices.IndexFunc(own, h.mayAddContext); i >= 0 {
		return own[i]
	}
	if h.mayAddIsolate(w) {
		return h.newIsolate(w, mode)
	}
	if jc := idlestContext(own); jc != nil {
		h.counters.discarded(jc, discardRoom)
		h.dropContext(jc)
		return jc.isolate
	}
	if h.makeRoom(w) {
		return h.newIsolate(w, mode)
	}
	for _, iso := range own {
		if !iso.closed && h.dropOlderHalf(iso) && (h.mayAddContext(iso) || h.collect(iso) && h.mayAddContext(iso)) {
			return iso
		}
	}
	return nil
}

// own returns the isolates in which w may have a context.
func (h *heaps) own(w *workers.Worker, mode workers.Mode) []*isolate {
	heapMB := h.pool.limits(w).HeapMB
	return slices.DeleteFunc(slices.Clone(h.isolates[h.pool.policies.Tenant(w.Owner)]), func(iso *isolate) bool {
		return iso.mode != mode || iso.heapMB != heapMB || iso.away
	})
}

// newContextIn makes a context in the isolate, or in the owner's smallest isolate if that is nil.
func (h *heaps) newContextIn(iso *isolate, w *workers.Worker, mode workers.Mode) (*jsContext, error) {
	if iso == nil {
		iso = smallestIsolate(h.own(w, mode), h.pool.cfg.ContextsPerIsolate)
	}
	if iso == nil {
		return nil, nil
	}
	return h.newContext(iso, w)
}

// mayAddContext reports whether the isolate may have one more context.
func (h *heaps) mayAddContext(iso *isolate) bool {
	if len(iso.contexts) >= h.pool.cfg.ContextsPerIsolate {
		return false
	}
	if iso.unmeasured > 0 { // something has run in it since
		h.counters.measure(iso, time.Now(), 0)
	}
	return len(iso.contexts) == 0 || iso.heap <= iso.othersLimit()
}

// mayRunHere reports whether the idle context may run where it is. If the other contexts seem to have too much, their
// garbage is collected before the run, so that the run does not pay for it.
func (h *heaps) mayRunHere(jc *jsContext) bool {
	iso := jc.isolate
	h.counters.measureBefore(jc)
	if iso.mode == workers.Persistent || jc.others() <= iso.othersLimit() {
		return true
	}
	h.counters.measure(iso, time.Now(), 0)
	return jc.others() <= iso.othersLimit() || h.collect(iso) && jc.others() <= iso.othersLimit()
}

// dropOlderHalf closes half of an isolate's idle contexts: those that were used longest ago. It returns false when
// there is none, or when the isolate is too large.
func (h *heaps) dropOlderHalf(iso *isolate) bool {
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
		if iso.heap > iso.othersLimit() {
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

// smallestIsolate returns the isolate for a context that has no room anywhere. So an owner at its share does not wait
// for its own runs. A run in that isolate may have to run again. It returns nil if each isolate has most contexts.
func smallestIsolate(isolates []*isolate, most int) (least *isolate) {
	for _, iso := range isolates {
		if !iso.closed && len(iso.contexts) < most && (least == nil || iso.heap < least.heap) {
			least = iso
		}
	}
	return least
}
