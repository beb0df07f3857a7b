package isolates

import (
	"time"

	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/isolates/bindings"
)

// placer decides in which context an attempt runs, by the mode of its worker, and what becomes of the context after it.
// Only its thread uses it.
//
// acquire comes first, then heaps.addRun. At the end of the run comes release, once. Between the two, the context is
// not given to another run, unless it is persistent.
type placer struct {
	heaps       *heaps
	persistents *persistents
	resting     resting     // told of each run that ends
	pendingCode pendingCode // contexts whose code is to be kept
}

// acquire finds or makes the context for w, according to its mode. It returns nil if there is no room now.
func (s *placer) acquire(w *workers.Worker, mode workers.Mode) (*jsContext, error) {
	h := s.heaps
	// First, so that a worker that cannot run takes no room from others.
	if _, err := bindings.SecretsOf(w, h.pool.cfg.Secrets, h.pool.checks); err != nil {
		return nil, err
	}
	switch mode {
	case workers.Oneshot:
		return h.newInOwnIsolate(w, mode)
	case workers.Persistent:
		return s.persistents.acquire(w)
	case workers.Shared:
		h.borrow(w)
	}
	return h.reuse(w, mode)
}

// release takes a run that has ended out of its context. why is the reason not to use the context again, or "".
func (s *placer) release(r *run, why string) {
	h, jc, iso := s.heaps, r.context, r.context.isolate
	h.removeRun(jc, r)
	iso.used, iso.rest = time.Now(), restNone
	s.resting.await()
	if why == "" && s.mustRecreate(jc) {
		why = discardReuses
	}
	if why == "" {
		s.pendingCode.noteRun(jc)
	}
	switch {
	case iso.mode == workers.Persistent:
		s.persistents.runEnded(jc, r)
		h.counters.measure(iso, iso.used, heapEvery)
	case iso.mode == workers.Oneshot: // closed when the reply was sent
		h.toClose = append(h.toClose, iso)
	case why != "":
		h.counters.discarded(jc, why)
		h.dropContext(jc)
	default:
		h.counters.measure(iso, iso.used, heapEvery)
	}
	if iso.mode == workers.Shared && iso.busy == 0 && !iso.closed {
		h.borrowed = append(h.borrowed, iso)
	}
}

// mustRecreate reports whether to recreate a context after ContextMaxReuses events. Recreating loses what V8 has
// learned about its code, so a context whose isolate is small stays.
func (s *placer) mustRecreate(jc *jsContext) bool {
	cfg := &s.heaps.pool.cfg
	if jc.life != nil || jc.uses == 0 || jc.uses%cfg.ContextMaxReuses != 0 {
		return false
	}
	s.heaps.counters.measure(jc.isolate, time.Now(), 0)
	return jc.isolate.heap > int64(cfg.ContextKeepMB)<<20
}
