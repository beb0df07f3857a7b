package isolates

import (
	"fmt"
	"sync"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/guard"
)

const (
	// betweenShare is which part of all threads the persistent contexts of an owner may take between events, in the long run.
	betweenShare = 10
	// betweenAtOnce is what they may take at once beside that.
	betweenAtOnce = time.Second
	// chargeStep is what CPU time of a run, or of a persistent context between events, dispatch hears of before its end.
	chargeStep = time.Millisecond
)

// budgets know what the persistent contexts of each owner may still take between events. Those use CPU time that no event accounts for. Safe for
// use by any goroutine.
type budgets struct {
	mu sync.Mutex
	of map[string]budget
}

type budget struct {
	left time.Duration
	at   time.Time
}

// refilled is the budget at a later time. threads is how many the process has.
func (b budget) refilled(now time.Time, threads int) budget {
	return budget{min(betweenAtOnce, b.left+now.Sub(b.at)*time.Duration(threads)/betweenShare), now}
}

// take takes CPU time from the budget of an owner, and is false when that is used up.
func (s *budgets) take(owner string, cpu time.Duration, now time.Time, threads int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.of[owner]
	if !ok {
		b = budget{betweenAtOnce, now}
	}
	b = b.refilled(now, threads)
	b.left = max(b.left-cpu, -betweenAtOnce)
	if s.of == nil {
		s.of = map[string]budget{}
	}
	s.of[owner] = b
	for other, o := range s.of { // one of those that need not be kept, now and then
		if o.refilled(now, threads).left == betweenAtOnce {
			delete(s.of, other)
		}
		break
	}
	return b.left >= 0
}

// between accounts for what a persistent context took between events: its owner is charged, and beyond the owner's budget the context ends.
func (t *thread) between(r *run, cpu time.Duration) {
	if cpu <= 0 || guard.TimerBudget.Off() {
		return
	}
	owner, l := r.attempt.Worker.Owner, r.guest.life
	if l.owed += cpu; l.owed >= chargeStep {
		t.pool.source.Charge(owner, l.owed)
		l.owed = 0
	}
	if !t.pool.budgets.take(owner, cpu, time.Now(), t.pool.cfg.Threads) && l.phase != doomed {
		t.stop(r, events.ReasonCPU, fmt.Sprintf("the persistent contexts of %s took more than a %dth of all threads and %s", owner, betweenShare, betweenAtOnce))
	}
}

// account tells dispatch what a run has taken so far, when that is worth it.
func (t *thread) account(r *run) {
	if r.over || r.cpu-r.told < chargeStep {
		return
	}
	r.told = r.cpu
	t.pool.source.Running(t.index, r.attempt, r.cpu)
}
