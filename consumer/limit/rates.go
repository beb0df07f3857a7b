package limit

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/pinwheel-run/pinwheel/internal/guard"
)

// Rates limits how often each owner may have this process do something. Each owner has a limit of its own. Rates keeps
// entries only for owners that used some of their limit recently.
type Rates struct {
	PerSecond, Burst int

	mu    sync.Mutex
	of    map[string]*rate.Limiter
	sweep int // number of owners at which it looks for owners to forget
}

// keptRates is how many owners a Rates keeps before it looks for some to forget.
const keptRates = 1024

// Take uses one of owner's actions. It returns false when none is left.
func (r *Rates) Take(owner string, now time.Time) bool {
	return guard.RequestRates.Off() || r.Limiter(owner, now).AllowN(now, 1)
}

// Limiter is the limiter of an owner.
func (r *Rates) Limiter(owner string, now time.Time) *rate.Limiter {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l := r.of[owner]; l != nil {
		return l
	}
	if len(r.of) >= max(r.sweep, keptRates) {
		for name, l := range r.of {
			if l.TokensAt(now) >= float64(r.Burst) {
				delete(r.of, name)
			}
		}
		r.sweep = 2 * len(r.of)
	}
	if r.of == nil {
		r.of = make(map[string]*rate.Limiter)
	}
	l := rate.NewLimiter(rate.Limit(r.PerSecond), r.Burst)
	r.of[owner] = l
	return l
}
