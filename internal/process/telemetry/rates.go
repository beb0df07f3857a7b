package telemetry

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxRates is how many owners rates knows. When there are more, it begins again, and each may have a burst once more.
const maxRates = 4096

// rates bounds how often something happens for each owner, so that one cannot take the room of the others.
type rates struct {
	perSecond int
	mu        sync.Mutex
	of        map[string]*rate.Limiter
}

func newRates(perSecond int) *rates {
	return &rates{perSecond: perSecond, of: map[string]*rate.Limiter{}}
}

// allow counts one more of an owner, unless that is too many.
func (r *rates) allow(owner string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.of[owner]
	if l == nil {
		if len(r.of) >= maxRates {
			clear(r.of)
		}
		l = rate.NewLimiter(rate.Limit(r.perSecond), r.perSecond)
		r.of[owner] = l
	}
	return l.AllowN(time.Now(), 1)
}
