// Package homes knows which thread has the persistent context of which worker: all its events run there.
package homes

import (
	"sync"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

// Release identifies a version of a worker. Owners share nothing, not even identical code.
type Release struct{ owner, worker, version, hash string }

// Of returns the release of w.
func Of(w *workers.Worker) Release { return Release{w.Owner, w.Name, w.Version, w.Hash} }

// Set has the homes of releases. H stands for a thread. Its zero value is ready. Any goroutine may call its methods.
type Set[H comparable] struct {
	mu sync.Mutex
	at map[Release]H
}

// Find returns the home of a release. If it has none, h becomes its home.
func (s *Set[H]) Find(r Release, h H) H {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := s.at[r]
	if ok {
		return at
	}
	if s.at == nil {
		s.at = map[Release]H{}
	}
	s.at[r] = h
	return h
}

// Move makes h the home instead of gone.
func (s *Set[H]) Move(r Release, gone, h H) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, ok := s.at[r]; ok && at == gone {
		s.at[r] = h
	}
}

// Leave notes that h no longer has the context.
func (s *Set[H]) Leave(r Release, h H) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, ok := s.at[r]; ok && at == h {
		delete(s.at, r)
	}
}

// Each calls f for the releases of a worker that have a home, or of all the owner's workers if name is "". f must not
// call the Set.
func (s *Set[H]) Each(owner, name string, f func(Release, H)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for r, h := range s.at {
		if r.owner == owner && (r.worker == name || name == "") {
			f(r, h)
		}
	}
}
