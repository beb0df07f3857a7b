package consumer

import (
	"fmt"
	"sync"

	"github.com/pinwheel-run/pinwheel/internal/guard"
)

const (
	// maxCalls is how many calls and parts of bodies may wait to be stored; more are refused.
	maxCalls = 1 << 14
	// maxOwnerCalls is how many of these may be one owner's once half of the places are taken.
	maxOwnerCalls = 1 << 11
)

// storing counts the calls and parts that wait to be stored, by owner.
type storing struct {
	mu  sync.Mutex
	all int
	of  map[string]int
}

// begin counts one more, unless there are too many already.
func (s *storing) begin(owner string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all >= maxCalls || s.all >= maxCalls/2 && s.of[owner] >= maxOwnerCalls && !guard.RequestRates.Off() {
		return false
	}
	if s.of == nil {
		s.of = make(map[string]int)
	}
	s.all++
	s.of[owner]++
	return true
}

// end counts one off.
func (s *storing) end(owner string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all--
	if s.of[owner]--; s.of[owner] == 0 {
		delete(s.of, owner)
	}
}

// full says why begin said no.
func (s *storing) full(owner string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of[owner] >= maxOwnerCalls {
		return fmt.Sprintf("%d calls and parts of bodies of owner %s wait to be stored: it may have no more", s.of[owner], owner)
	}
	return "too many calls wait to be stored"
}
