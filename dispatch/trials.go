package dispatch

import (
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/guard"
)

// trialFor is how long the direct events of an owner run beside those of no other suspect.
const trialFor = time.Second

// trials are workers that ran in a process when it died, and of which one may have ended it. Their direct events run,
// but those of one owner at a time. So the next crash shows whose it was, and the others are free after trialFor each.
// Guarded by the dispatcher's lock.
type trials struct {
	suspects map[suspected]struct{}
	owner    string    // whose trial it is; "" = nobody's
	until    time.Time // when it ends
	over     time.Time // when all are free, whether they ran or not
	refused  uint64    // direct events, also those that bans refused; for the metrics
}

type suspected struct{ owner, worker string }

// Suspect is what is known of a worker that ran in a process when it died.
type Suspect struct {
	Owner  string
	Worker string        // "" = all of the owner's
	Times  int           // processes that died
	Left   time.Duration // how much longer its direct events are refused
	Try    bool          // they run beside those of no other suspect at first
}

// trialsFor is how long suspects that get no requests stay suspects.
const trialsFor = time.Minute

// Suspect takes what is known of crashes. It may be called from any goroutine.
func (d *Dispatcher) Suspect(all []Suspect) {
	if guard.CrashSuspects.Off() {
		return
	}
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range all {
		if s.Left > 0 {
			key := banned{s.Owner, s.Worker, true}
			d.set(key, ban{s.Times, now, now.Add(s.Left)}, now)
		}
		if s.Try {
			if d.trials.suspects == nil {
				d.trials.suspects = map[suspected]struct{}{}
			}
			d.trials.suspects[suspected{s.Owner, s.Worker}] = struct{}{}
			d.trials.over = now.Add(trialsFor)
		}
	}
}

// try returns why a direct event may not run beside those of another suspect, or nil.
func (t *trials) try(e *events.Event, now time.Time) *events.Failure {
	if t.owner != "" && !now.Before(t.until) {
		t.free(t.owner)
		t.owner = ""
	}
	if !now.Before(t.over) {
		clear(t.suspects)
	}
	if _, ok := t.suspects[suspected{e.Owner, e.Worker}]; !ok || t.owner == e.Owner {
		return nil
	}
	if t.owner == "" {
		t.owner, t.until = e.Owner, now.Add(trialFor)
		return nil
	}
	return t.refuse(t.until.Sub(now), "a process died while worker %s and others ran: they run one after the other at first", e.Target())
}

// free removes the workers of an owner.
func (t *trials) free(owner string) {
	for w := range t.suspects {
		if w.owner == owner {
			delete(t.suspects, w)
		}
	}
}

// refuse returns the failure of a direct event that may come again after that time.
func (t *trials) refuse(after time.Duration, format string, args ...any) *events.Failure {
	t.refused++
	f := events.Fail(events.ReasonCrash, format, args...)
	f.RetryAfter = after
	return f
}
