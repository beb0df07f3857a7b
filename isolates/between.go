package isolates

import (
	"fmt"
	"sync"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/lib/guard"
)

const (
	// betweenShare limits the CPU time between events. In the long run the persistent contexts of an owner may take one
	// part in betweenShare of all threads.
	betweenShare = 10
	// betweenAtOnce is the CPU time that they may take at once in addition.
	betweenAtOnce = time.Second
	// chargeStep is the unit in which CPU time is reported to dispatch before the end: of a run, or of a persistent
	// context between events.
	chargeStep = time.Millisecond
)

// budgets records how much CPU time the persistent contexts of each owner may still take between events. No event
// accounts for that time. Safe for use by any goroutine.
type budgets struct {
	share int // betweenShare, except in tests
	mu    sync.Mutex
	of    map[string]budget
}

type budget struct {
	left time.Duration
	at   time.Time
}

// refilled returns a budget at a later time. threads is how many threads the process has.
func (s *budgets) refilled(b budget, now time.Time, threads int) budget {
	return budget{min(betweenAtOnce, b.left+now.Sub(b.at)*time.Duration(threads)/time.Duration(s.share)), now}
}

// take takes CPU time from the budget of an owner. It returns false when the budget is used up.
func (s *budgets) take(owner string, cpu time.Duration, now time.Time, threads int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.of[owner]
	if !ok {
		b = budget{betweenAtOnce, now}
	}
	b = s.refilled(b, now, threads)
	b.left = max(b.left-cpu, -betweenAtOnce)
	if s.of == nil {
		s.of = map[string]budget{}
	}
	s.of[owner] = b
	for other, o := range s.of { // delete at most one entry that is full again
		if s.refilled(o, now, threads).left == betweenAtOnce {
			delete(s.of, other)
		}
		break
	}
	return b.left >= 0
}

// pause is how long the clients of an owner must wait before they cause more work between events, so that half of
// betweenAtOnce is left.
func (s *budgets) pause(owner string, now time.Time, threads int) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.of[owner]
	if !ok {
		return 0
	}
	if lacks := betweenAtOnce/2 - s.refilled(b, now, threads).left; lacks > 0 {
		return lacks * time.Duration(s.share) / time.Duration(threads)
	}
	return 0
}

// between accounts for CPU time that a persistent context took between events. Its owner is charged. If the owner's
// budget is used up, the context ends.
func (t *thread) between(r *run, cpu time.Duration) {
	if cpu <= 0 || guard.TimerBudget.Off() {
		return
	}
	owner, l := r.attempt.Worker.Owner, r.context.life
	if l.owed += cpu; l.owed >= chargeStep {
		t.pool.source.Charge(owner, l.owed)
		l.owed = 0
	}
	if !t.pool.budgets.take(owner, cpu, time.Now(), t.pool.cfg.Threads) && l.phase != invalid {
		t.stop(r, events.ReasonCPU, fmt.Sprintf("the persistent contexts of %s took more than a %dth of all threads and %s", owner, betweenShare, betweenAtOnce))
	}
}

// account reports the CPU time of a run so far to dispatch, in steps of chargeStep.
func (t *thread) account(r *run) {
	if r.over || r.cpu-r.reported < chargeStep {
		return
	}
	r.reported = r.cpu
	t.pool.source.Running(t.index, r.attempt, r.cpu)
}
