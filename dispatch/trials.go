package dispatch

import (
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// trialFor is how long the direct events of an owner run beside those of no other suspect.
const trialFor = time.Second

// trials are workers that ran in a process when it died, and of which one may have ended it. Their direct events run,
// but those of one owner at a time. So the next crash shows whose it was, and the others are free after trialFor each.
// d.mu must be held for all methods.
type trials struct {
	suspects map[suspected]struct{}
	owner    string    // whose trial it is; "" = nobody's
	until    time.Time // when it ends
	over     time.Time // when all are free, whether they ran or not
	refused  uint64    // direct events; for the metrics
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

func (t *trials) add(s Suspect, now time.Time) {
	if t.suspects == nil {
		t.suspects = map[suspected]struct{}{}
	}
	t.suspects[suspected{s.Owner, s.Worker}] = struct{}{}
	t.over = now.Add(trialsFor)
}

// refuse returns why a direct event may not run beside those of another suspect, or nil.
func (t *trials) refuse(e *lifecycle.Delivery, now time.Time) *events.Failure {
	if !e.Direct() {
		return nil
	}
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
	t.refused++
	return comeAgain(t.until.Sub(now), "a process died while worker %s and others ran: they run one after the other at first", e.Target())
}

// free removes the workers of an owner.
func (t *trials) free(owner string) {
	for w := range t.suspects {
		if w.owner == owner {
			delete(t.suspects, w)
		}
	}
}

// comeAgain returns the failure of a direct event that may come again after that time.
func comeAgain(after time.Duration, format string, args ...any) *events.Failure {
	f := events.Fail(events.ReasonCrash, format, args...)
	f.RetryAfter = after
	return f
}
