package perowner

import (
	"context"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/pinwheel-run/pinwheel/internal/lib/guard"
)

// Rates limits how much of something each owner may use in a second. Each owner has a limit of its own. Set the fields
// before the first use. Any goroutine may call its methods. Nothing is kept of an owner that has all of its burst
// again.
type Rates struct {
	PerSecond, Burst int // in units that the user chooses: requests, or microseconds of CPU time

	mu    sync.Mutex
	of    map[string]*use
	sweep int       // number of owners at which it looks for owners to forget
	swept time.Time // when it did so
}

// use is what an owner has used.
type use struct {
	*rate.Limiter
	refused int       // by Allow, since it returned true
	last    time.Time // when Allow refused
}

const (
	// keptRates is how many owners a Rates keeps before it looks for some to forget.
	keptRates = 1024
	// MostRates is how many owners a Rates keeps at most. Beyond it, owners are forgotten that have something left.
	MostRates = 8 * keptRates
	// sweepEvery is how often it looks for owners to forget when they are fewer, and for how long it counts refusals.
	sweepEvery = time.Minute
)

// Take uses one unit of an owner's. It returns false when none is left.
func (r *Rates) Take(owner string, now time.Time) bool {
	if guard.RequestRates.Off() {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.use(owner, now).AllowN(now, 1)
}

// Allow is Take for lines of logs and the like, whose reader is told how many were left out: before is how many times
// it has returned false for the owner since it returned true.
func (r *Rates) Allow(owner string, now time.Time) (before int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	u := r.use(owner, now)
	if !u.AllowN(now, 1) {
		u.refused++
		u.last = now
		return 0, false
	}
	before, u.refused = u.refused, 0
	return before, true
}

// Wait uses one unit of an owner's when there is one. The error is that of ctx, or that it ends before. An owner that
// has all of its burst may be forgotten just before it waits: then this unit does not count.
func (r *Rates) Wait(ctx context.Context, owner string) error {
	r.mu.Lock()
	u := r.use(owner, time.Now())
	r.mu.Unlock()
	return u.Wait(ctx)
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
	r.mu.Lock()
	defer r.mu.Unlock()
	u := r.use(owner, now)
	for ; n > r.Burst; n -= r.Burst {
		u.ReserveN(now, r.Burst)
	}
	u.ReserveN(now, n)
}

// Owes returns how long an owner has to wait until it owes nothing. It is 0 for an owner that owes nothing.
func (r *Rates) Owes(owner string, now time.Time) time.Duration {
	return max(0, time.Duration(-r.Left(owner, now)/float64(r.PerSecond)*float64(time.Second)))
}

// Left returns how many units an owner has left. Less than 0 is what it owes.
func (r *Rates) Left(owner string, now time.Time) float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if u := r.of[owner]; u != nil {
		return u.TokensAt(now)
	}
	return float64(r.Burst)
}

// Room reports whether an owner is one of most that have used something lately. A user that asks before it takes or
// charges, with a number below MostRates, has no debt forgotten.
func (r *Rates) Room(owner string, most int, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of[owner] == nil && len(r.of) >= most {
		r.forget(now)
	}
	return r.of[owner] != nil || len(r.of) < most
}

// Len returns how many owners it keeps.
func (r *Rates) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.of)
}

// use returns what an owner has used. r.mu must be held, also when units are taken: another call may forget the owner.
// Only Wait, which waits, does without.
func (r *Rates) use(owner string, now time.Time) *use {
	u := r.of[owner]
	if u == nil && len(r.of) >= max(r.sweep, keptRates) || now.Sub(r.swept) >= sweepEvery {
		r.forget(now)
		u = r.of[owner]
	}
	if u != nil {
		return u
	}
	if r.of == nil {
		r.of = make(map[string]*use)
	}
	u = &use{Limiter: rate.NewLimiter(rate.Limit(r.PerSecond), r.Burst)}
	r.of[owner] = u
	return u
}

// forget removes owners that have used nothing lately. If MostRates are left, it removes half of them, those that owe
// nothing first. r.mu must be held.
func (r *Rates) forget(now time.Time) {
	for name, u := range r.of {
		if u.TokensAt(now) >= float64(r.Burst) && (u.refused == 0 || now.Sub(u.last) >= sweepEvery) {
			delete(r.of, name)
		}
	}
	if len(r.of) >= MostRates {
		r.remove(0, now)
		r.remove(math.Inf(-1), now)
	}
	r.sweep, r.swept = min(2*len(r.of), MostRates), now
}

// remove removes owners that have at least that much left, until half of MostRates remain. r.mu must be held.
func (r *Rates) remove(least float64, now time.Time) {
	for name, u := range r.of {
		if len(r.of) <= MostRates/2 {
			return
		}
		if u.TokensAt(now) >= least {
			delete(r.of, name)
		}
	}
}
