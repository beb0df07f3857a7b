package owners

import (
	"sync"
	"time"
)

const (
	// BetweenShare limits the CPU time between events. In the long run the persistent contexts of an owner may take one
	// part in BetweenShare of all threads.
	BetweenShare = 10
	// BetweenAtOnce is the CPU time that they may take at once in addition.
	BetweenAtOnce = time.Second
)

// Budgets records how much CPU time the persistent contexts of each owner may still take between events. No event
// accounts for that time. Safe for use by any goroutine.
type Budgets struct {
	Share int // BetweenShare, except in tests
	mu    sync.Mutex
	of    map[string]budget
}

type budget struct {
	left time.Duration
	at   time.Time
}

// refilled returns a budget at a later time. threads is how many threads the process has.
func (s *Budgets) refilled(b budget, now time.Time, threads int) budget {
	return budget{min(BetweenAtOnce, b.left+now.Sub(b.at)*time.Duration(threads)/time.Duration(s.Share)), now}
}

// Take takes CPU time from the budget of an owner. It returns false when the budget is used up.
func (s *Budgets) Take(owner string, cpu time.Duration, now time.Time, threads int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.of[owner]
	if !ok {
		b = budget{BetweenAtOnce, now}
	}
	b = s.refilled(b, now, threads)
	b.left = max(b.left-cpu, -BetweenAtOnce)
	if s.of == nil {
		s.of = map[string]budget{}
	}
	s.of[owner] = b
	for other, o := range s.of { // delete at most one entry that is full again
		if s.refilled(o, now, threads).left == BetweenAtOnce {
			delete(s.of, other)
		}
		break
	}
	return b.left >= 0
}

// Pause is how long the clients of an owner must wait before they cause more work between events, so that half of
// BetweenAtOnce is left.
func (s *Budgets) Pause(owner string, now time.Time, threads int) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.of[owner]
	if !ok {
		return 0
	}
	if lacks := BetweenAtOnce/2 - s.refilled(b, now, threads).left; lacks > 0 {
		return lacks * time.Duration(s.Share) / time.Duration(threads)
	}
	return 0
}
