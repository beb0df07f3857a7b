// Package affinity knows which thread has the persistent context of which worker: all its events run there.
package affinity

import (
	"sync"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

// Release identifies a version of a worker. Owners share nothing, not even identical code.
type Release struct{ owner, worker, version, hash string }

// Of returns the release of w.
func Of(w *workers.Worker) Release { return Release{w.Owner, w.Name, w.Version, w.Hash} }

// Threads has the thread of each release. T stands for a thread. Its zero value is ready. Any goroutine may call its
// methods.
type Threads[T comparable] struct {
	mu sync.Mutex
	of map[Release]T
}

// Assign returns the thread of a release. If it has none, it gets t.
func (s *Threads[T]) Assign(r Release, t T) T {
	s.mu.Lock()
	defer s.mu.Unlock()
	assigned, ok := s.of[r]
	if ok {
		return assigned
	}
	if s.of == nil {
		s.of = map[Release]T{}
	}
	s.of[r] = t
	return t
}

// Reassign gives a release to another thread, if it has the thread from.
func (s *Threads[T]) Reassign(r Release, from, to T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t, ok := s.of[r]; ok && t == from {
		s.of[r] = to
	}
}

// Unassign notes that t no longer has the context of a release.
func (s *Threads[T]) Unassign(r Release, t T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if assigned, ok := s.of[r]; ok && assigned == t {
		delete(s.of, r)
	}
}

// Len returns how many releases have a thread.
func (s *Threads[T]) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.of)
}

// Each calls f for the releases of a worker that have a thread, or of all the owner's workers if name is "". f must not
// call the Threads.
func (s *Threads[T]) Each(owner, name string, f func(Release, T)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for r, t := range s.of {
		if r.owner == owner && (r.worker == name || name == "") {
			f(r, t)
		}
	}
}
