package events

import "sync"

// Signal is something that happens once, or not at all. The zero Signal has not happened. From any goroutine.
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

// On has f called once when it happens, at once if it has already; nil takes the last f back. f may be called from any goroutine.
func (s *Signal) On(f func()) {
	s.mu.Lock()
	s.on = f
	fired := s.fired
	s.mu.Unlock()
	if fired && f != nil {
		f()
	}
}
