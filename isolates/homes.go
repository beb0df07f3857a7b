package isolates

import (
	"slices"
	"sync"

	"github.com/pinwheel-run/pinwheel/events"
)

// homes knows which thread has the persistent context of which worker: all its events run there.
type homes struct {
	mu sync.Mutex
	at map[release]*thread
}

// of is the thread that has the context, which is t when none has.
func (s *homes) of(h release, t *thread) *thread {
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
func (s *homes) move(h release, gone, t *thread) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at[h] == gone {
		s.at[h] = t
	}
}

// leave says that t has the context no more.
func (s *homes) leave(h release, t *thread) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at[h] == t {
		delete(s.at, h)
	}
}

// outdate makes the contexts of other versions of the worker go when they have had no event for a while.
func (s *homes) outdate(latest release) {
	s.each(latest.owner, latest.worker, func(t *thread, g *guest) {
		if g.life.of == latest || g.worker.Lifetime.Idle != 0 || len(g.runs) > 0 || g.life.idle != nil {
			return
		}
		t.goIdle(g, outdated)
	})
}

// each has f called on the threads that have persistent contexts of the worker.
func (s *homes) each(owner, name string, f func(*thread, *guest)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for h, t := range s.at {
		if h.owner == owner && h.worker == name {
			t.post(func(t *thread) {
				if g := t.lives[h]; g != nil && g.loaded {
					f(t, g)
				}
			})
		}
	}
}

// handOver gives an attempt of a persistent worker to the thread that has its context, and is false when that is t.
func (t *thread) handOver(a *events.Attempt) bool {
	h := releaseOf(a.Worker)
	for {
		at := t.pool.homes.of(h, t)
		if at == t {
			return false
		}
		if at.adopt(a) {
			return true
		}
		t.pool.homes.move(h, at, t)
	}
}

// adopt takes an attempt from another thread, unless this one is gone.
func (t *thread) adopt(a *events.Attempt) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gone {
		return false
	}
	t.adopted = append(t.adopted, a)
	t.nudge()
	return true
}

// goAway ends the taking in of attempts, and returns those that were not looked at.
func (t *thread) goAway() []*events.Attempt {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.gone = true
	left := t.adopted
	t.adopted = nil
	return left
}

// Retire ends the contexts of a worker that was removed: persistent ones as soon as nothing runs in them, others if nothing runs in them now. From any
// goroutine.
func (p *Pool) Retire(owner, name string) {
	p.homes.each(owner, name, func(t *thread, g *guest) { t.retire(g, discardRemoved) })
	for i := range p.threads {
		p.threads[i].Load().post(func(t *thread) {
			if i == 0 {
				t.borrowAll(owner)
			}
			t.dropContexts(owner, discardRemoved, func(g *guest) bool { return g.worker.Name == name })
			for _, iso := range slices.Clone(t.isolates[owner]) {
				if len(iso.guests) == 0 && !iso.away {
					t.dropIsolate(iso)
				}
			}
		})
	}
}
