package isolates

import (
	"sync"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// release identifies a version of a worker. Owners share nothing, not even identical code.
type release struct{ owner, worker, version, hash string }

func releaseOf(w *workers.Worker) release { return release{w.Owner, w.Name, w.Version, w.Hash} }

// affinity knows which thread has the persistent context of which worker: all its events run there.
type affinity struct {
	mu sync.Mutex
	at map[release]*thread
}

// of returns the thread that has the context. If none has, t becomes its home.
func (s *affinity) of(h release, t *thread) *thread {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at[h] == nil {
		if s.at == nil {
			s.at = map[release]*thread{}
		}
		s.at[h] = t
	}
	return s.at[h]
}

// move makes t the home instead of gone.
func (s *affinity) move(h release, gone, t *thread) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at[h] == gone {
		s.at[h] = t
	}
}

// leave notes that t no longer has the context.
func (s *affinity) leave(h release, t *thread) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at[h] == t {
		delete(s.at, h)
	}
}

// outdate closes contexts of other versions of the worker after they have had no event for OldVersionIdle.
func (s *affinity) outdate(latest release) {
	s.each(latest.owner, latest.worker, func(t *thread, jc *jsContext) {
		if jc.life.of == latest || jc.worker.Lifetime.Idle != 0 || len(jc.runs) > 0 || jc.life.idle != nil {
			return
		}
		t.persistents.goIdle(jc, t.pool.cfg.OldVersionIdle)
	})
}

// each calls f on the threads that have persistent contexts of the worker, or of all the owner's if name is "".
func (s *affinity) each(owner, name string, f func(*thread, *jsContext)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for h, t := range s.at {
		if h.owner == owner && (h.worker == name || name == "") {
			t.post(func(t *thread) {
				if jc := t.persistents.of[h]; jc != nil && jc.loaded {
					f(t, jc)
				}
			})
		}
	}
}

// handOver gives an attempt of a persistent worker to the thread that has its context. It returns false when that is t.
func (s *affinity) handOver(a *lifecycle.Attempt, t *thread) bool {
	h := releaseOf(a.Worker)
	for {
		at := s.of(h, t)
		if at == t {
			return false
		}
		if at.inbox.adopt(a) {
			return true
		}
		s.move(h, at, t)
	}
}
