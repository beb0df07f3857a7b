package workerlease

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	// lookEvery is when a process that waits looks whether the lease is free, if no message says so.
	lookEvery = time.Second
	// afterYou is how long a process that let go for others does not take the lease again.
	afterYou = 100 * time.Millisecond
	// again is when a request to NATS that failed is made again.
	again = 250 * time.Millisecond
	// patience is how long a request to NATS may take.
	patience = 2 * time.Second
)

// lease is the lease of one worker, as long as this process wants or has it. Its goroutine is run. The flags are
// guarded by Leases.mu.
type lease struct {
	*Leases
	key     key
	changed chan struct{} // a flag was set

	wanted bool
	asked  bool   // another process waits
	free   bool   // another process has let go
	back   bool   // no event of it runs, and none will
	term   uint64 // 0 = this process does not have it

	// Only run uses these.
	revision uint64    // of the key
	renewed  time.Time // when the request was sent that renewed it last
	since    time.Time // that the process has it
	left     bool      // Withdraw was called
}

func (x *lease) signal() {
	select {
	case x.changed <- struct{}{}:
	default:
	}
}

// flags are what happened since the last take.
type flags struct{ asked, free, back, draining bool }

// take returns the flags.
func (x *lease) take() flags {
	x.mu.Lock()
	defer x.mu.Unlock()
	f := flags{x.asked, x.free, x.back, x.draining}
	x.free = false
	return f
}

// run has the lease as often as it is wanted, until ctx is done.
func (x *lease) run(ctx context.Context) {
	for x.goesOn(ctx) {
		if x.acquire(ctx) {
			x.hold(ctx)
		}
	}
}

// goesOn reports whether the lease is wanted. Otherwise it is forgotten.
func (x *lease) goesOn(ctx context.Context) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.wanted && !x.draining && ctx.Err() == nil {
		return true
	}
	delete(x.all, x.key)
	return false
}

// wait waits for a flag, at most that long. It returns false when the process ends.
func (x *lease) wait(ctx context.Context, long time.Duration) bool {
	timer := time.NewTimer(long)
	defer timer.Stop()
	select {
	case <-x.changed:
	case <-timer.C:
	case <-ctx.Done():
		return false
	}
	return true
}

// acquire takes the lease when it is free. It returns false when the process drains or ends.
func (x *lease) acquire(ctx context.Context) bool {
	if x.paces.Wait(ctx, x.key.owner) != nil {
		return false
	}
	var look time.Time // when to look whether it is free
	for {
		if now := time.Now(); !now.Before(look) {
			x.mu.Lock()
			x.asked = false // who asks from now on asks the next holder
			x.mu.Unlock()
			got, err := x.create(ctx)
			switch {
			case got:
				return true
			case err != nil:
				x.log.Debug().Err(err).Stringer("worker", x.key).Msg("the lease of a worker cannot be taken; trying again")
				look = now.Add(again)
			default:
				x.tell(x.key, false)
				look = now.Add(lookEvery + rand.N(lookEvery/4))
			}
		}
		if !x.wait(ctx, max(0, time.Until(look))) {
			return false
		}
		switch f := x.take(); {
		case f.draining:
			return false
		case f.free:
			look = time.Now()
		}
	}
}

// create takes the key if it is not there. It is also this process's if the answer to an earlier request was lost.
func (x *lease) create(ctx context.Context) (got bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	sent := time.Now()
	revision, err := x.kv.Create(ctx, x.key.String(), []byte(x.self))
	if errors.Is(err, jetstream.ErrKeyExists) || errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
		var mine bool
		if revision, mine, err = x.own(ctx); err != nil || !mine {
			return false, err
		}
		sent = time.Now()
		revision, err = x.kv.Update(ctx, x.key.String(), []byte(x.self), revision)
	}
	if err != nil {
		return false, err
	}
	x.revision, x.renewed, x.since, x.left = revision, sent, sent, false
	return true, nil
}

// own looks whether the key is this process's.
func (x *lease) own(ctx context.Context) (revision uint64, mine bool, err error) {
	e, err := x.kv.Get(ctx, x.key.String())
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	return e.Revision(), string(e.Value()) == x.self, nil
}

// hold has the lease until it is given back or lapses.
func (x *lease) hold(ctx context.Context) {
	x.mu.Lock()
	x.wanted, x.back, x.term = false, false, x.revision
	term := x.term
	x.mu.Unlock()
	x.held.Inc()
	defer x.held.Dec()
	how := givenBack
	if x.runner.Grant(x.key.owner, x.key.worker, term) {
		how = x.keep(ctx, term)
	}
	x.mu.Lock()
	x.term = 0
	asked := x.asked
	x.mu.Unlock()
	switch {
	case how == lapsed:
		x.lapsed.Inc()
		x.log.Warn().Stringer("worker", x.key).Msg("the lease of a worker could not be renewed: its runs end")
		x.runner.Lapse(x.key.owner, x.key.worker, term)
	case how == givenBack:
		if x.release(ctx); asked {
			x.pause(ctx)
		}
	}
}

// ending is how a lease ends.
type ending uint8

const (
	givenBack ending = iota // no event runs under it
	lapsed                  // it was not renewed, or another process has it
	abandoned               // the process ends with runs under it: others get it when it is not renewed
)

// keep renews the lease until it ends.
func (x *lease) keep(ctx context.Context, term uint64) ending {
	lapse, renew := x.cfg.TTL*2/3, x.cfg.TTL/4
	next := x.renewed.Add(renew)
	for {
		f, now := x.take(), time.Now()
		over := f.draining || f.asked && now.Sub(x.since) >= x.cfg.Turn
		switch {
		case f.back:
			return givenBack
		case now.Sub(x.renewed) >= lapse:
			return lapsed
		case over && !x.left:
			x.left = true
			if x.withdraw(term, false) {
				return givenBack
			}
		case f.asked && !x.left && x.withdraw(term, true):
			return givenBack
		case !now.Before(next):
			if !x.left && x.withdraw(term, true) {
				return givenBack // no process needs it
			}
			mine, err := x.renew(ctx)
			if err == nil && !mine {
				return lapsed
			}
			next = now.Add(renew)
			if err != nil {
				x.log.Debug().Err(err).Stringer("worker", x.key).Msg("the lease of a worker was not renewed; trying again")
				next = now.Add(again)
			}
			continue
		}
		until := next
		if lapsesAt := x.renewed.Add(lapse); lapsesAt.Before(until) {
			until = lapsesAt
		}
		if turn := x.since.Add(x.cfg.Turn); f.asked && !x.left && turn.Before(until) {
			until = turn
		}
		if !x.wait(ctx, max(0, time.Until(until))) {
			return abandoned
		}
	}
}

func (x *lease) withdraw(term uint64, idle bool) bool {
	return x.runner.Withdraw(x.key.owner, x.key.worker, term, idle)
}

// renew renews the lease. It returns false when the key is another process's, or gone.
func (x *lease) renew(ctx context.Context) (mine bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	sent := time.Now()
	revision, err := x.kv.Update(ctx, x.key.String(), []byte(x.self), x.revision)
	if errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
		if x.revision, mine, err = x.own(ctx); err != nil || !mine {
			return false, err
		}
		sent = time.Now()
		revision, err = x.kv.Update(ctx, x.key.String(), []byte(x.self), x.revision)
	}
	if err != nil {
		return false, err
	}
	x.revision, x.renewed = revision, sent
	return true, nil
}

// release lets others take the lease.
func (x *lease) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if err := x.kv.Delete(ctx, x.key.String(), jetstream.LastRevision(x.revision)); err != nil {
		x.log.Debug().Err(err).Stringer("worker", x.key).Msg("the lease of a worker was not given back; it goes by itself")
		return
	}
	x.tell(x.key, true)
}

// pause lets the processes that asked go first.
func (x *lease) pause(ctx context.Context) {
	timer := time.NewTimer(afterYou)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
