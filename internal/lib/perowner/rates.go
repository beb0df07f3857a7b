package perowner

import (
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/pinwheel-run/pinwheel/internal/lib/guard"
)

// Rates limits how much of something each owner may use in a second. Each owner has a limit of its own. Set the fields
// before the first use. Any goroutine may call its methods.
type Rates struct {
	PerSecond, Burst int // in units that the user chooses: requests, or microseconds of CPU time

	mu    sync.Mutex
	of    map[string]*rate.Limiter
	sweep int // number of owners at which it looks for owners to forget
}

const (
	// keptRates is how many owners a Rates keeps before it looks for some to forget.
	keptRates = 1024
	// mostRates is how many owners a Rates keeps at most. Beyond it, owners are forgotten that have something left.
	mostRates = 8 * keptRates
)

// Take uses one unit of an owner's. It returns false when none is left.
func (r *Rates) Take(owner string, now time.Time) bool {
	return guard.RequestRates.Off() || r.Limiter(owner, now).AllowN(now, 1)
}

// Charge uses n units of an owner's, also more than are left. An owner that owes units has used more than it may.
func (r *Rates) Charge(owner string, n int, now time.Time) {
	if !guard.RequestRates.Off() {
		r.charge(owner, n, now)
	}
}

func (r *Rates) charge(owner string, n int, now time.Time) {
	if n <= 0 {
		return
	}
	l := r.Limiter(owner, now)
	for ; n > r.Burst; n -= r.Burst {
		l.ReserveN(now, r.Burst)
	}
	l.ReserveN(now, n)
}

// Owes returns how long an owner has to wait until it owes nothing. It is 0 for an owner that owes nothing.
func (r *Rates) Owes(owner string, now time.Time) time.Duration {
	r.mu.Lock()
	l := r.of[owner]
	r.mu.Unlock()
	if l == nil {
		return 0
	}
	return max(0, time.Duration(-l.TokensAt(now)/float64(r.PerSecond)*float64(time.Second)))
}

// Limiter returns the limiter of an owner.
func (r *Rates) Limiter(owner string, now time.Time) *rate.Limiter {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l := r.of[owner]; l != nil {
		return l
	}
	if len(r.of) >= max(r.sweep, keptRates) {
		r.forget(now)
	}
	if r.of == nil {
		r.of = make(map[string]*rate.Limiter)
	}
	l := rate.NewLimiter(rate.Limit(r.PerSecond), r.Burst)
	r.of[owner] = l
	return l
}

// forget removes owners that have used nothing lately. If mostRates are left, it removes half of them, those that owe
// nothing first.
func (r *Rates) forget(now time.Time) {
	r.remove(float64(r.Burst), now, 0)
	if len(r.of) >= mostRates {
		r.remove(0, now, mostRates/2)
		r.remove(math.Inf(-1), now, mostRates/2)
	}
	r.sweep = min(2*len(r.of), mostRates)
}

// remove removes owners that have at least that much left, until only keep owners remain.
func (r *Rates) remove(least float64, now time.Time, keep int) {
	for name, l := range r.of {
		if len(r.of) <= keep {
			return
		}
		if l.TokensAt(now) >= least {
			delete(r.of, name)
		}
	}
}
