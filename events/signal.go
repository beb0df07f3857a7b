package events

import "sync"

// Signal is something that happens at most once. The zero Signal has not happened. Any goroutine may use it.
type Signal struct {
	mu    sync.Mutex
	fired bool
	on    func()
}

// Fire says that it has happened.
func (s *Signal) Fire() {
	s.mu.Lock()
	f := s.on
	if s.fired {
		f = nil
	}
	s.fired = true
	s.mu.Unlock()
	if f != nil {
		f()
	}
}

// Fired reports whether it has happened.
func (s *Signal) Fired() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fired
}

// On calls f once when it happens; immediately if it has happened already. nil removes the last f. Any goroutine may
// call f.
func (s *Signal) On(f func()) {
	s.mu.Lock()
	s.on = f
	fired := s.fired
	s.mu.Unlock()
	if fired && f != nil {
		f()
	}
}
