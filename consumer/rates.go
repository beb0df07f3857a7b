package consumer

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/pinwheel-run/pinwheel/internal/guard"
)

// rates bounds how often each owner may have this process do something. What an owner uses is its own: others have as much. It holds
// something only for owners that used some of theirs lately.
type rates struct {
	perSecond, burst int

	mu    sync.Mutex
	of    map[string]*rate.Limiter
	sweep int // owners that there may be before those are looked for that have all of theirs again
}

// keptRates is how many owners a rates knows before it looks for some to forget.
const keptRates = 1024

// take uses one of what owner may do now, or reports that nothing is left.
func (r *rates) take(owner string, now time.Time) bool {
	return guard.RequestRates.Off() || r.limiter(owner, now).AllowN(now, 1)
}

// limiter is the limiter of an owner.
func (r *rates) limiter(owner string, now time.Time) *rate.Limiter {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l := r.of[owner]; l != nil {
		return l
	}
	if len(r.of) >= max(r.sweep, keptRates) {
		for name, l := range r.of {
			if l.TokensAt(now) >= float64(r.burst) {
				delete(r.of, name)
			}
		}
		r.sweep = 2 * len(r.of)
	}
	if r.of == nil {
		r.of = make(map[string]*rate.Limiter)
	}
	l := rate.NewLimiter(rate.Limit(r.perSecond), r.burst)
	r.of[owner] = l
	return l
}
