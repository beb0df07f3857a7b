package dispatch

import (
	"sync"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/lib/guard"
)

// PolicySet applies the policy that Config.Catalog has of an owner now, and what Config.PoolOf says. Of a policy,
// dispatch uses only the shares of events and of CPU time, and what is paused. In a new pool, the owner's events that
// wait start there; attempts that run end where they are.
func (d *Dispatcher) PolicySet(name string) {
	d.locked(func(now time.Time, fx *effects) {
		if o := d.owners[name]; o != nil {
			if to := d.pools.poolOf(name); to != o.pool {
				d.pools.move(o, to, o.class)
			}
			d.rebound(o, fx)
			d.holdQueued(o, now, fx)
		}
	})
}

// SetProcesses sets how many processes the fleet has, including this one. Limits that hold for the whole fleet are
// divided again.
func (d *Dispatcher) SetProcesses(n int) {
	n = max(1, n)
	d.locked(func(_ time.Time, fx *effects) {
		if n == d.gates.owners.processes {
			return
		}
		d.gates.owners.processes = n
		for name, o := range d.owners {
			if p := d.gates.owners.cfg.Catalog.Policy(name); p.FleetMaxRunning > 0 || p.FleetMaxQueued > 0 {
				d.rebound(o, fx)
			}
		}
		d.gates.workers.processes = n
		for r := range d.gates.workers.limited {
			d.gates.workers.limit(r, fx)
			d.changed(r.owner)
		}
	})
}

// Overstays reports that a turn of w continues in V8 although it was told to end, or that this is over. Meanwhile no
// event of its owner starts. Any goroutine may call it.
func (d *Dispatcher) Overstays(w *workers.Worker, is bool) {
	d.locked(func(time.Time, *effects) {
		d.gates.owners.overstays(w.Owner, is)
		if o := d.owners[w.Owner]; o != nil {
			d.changed(o)
		}
	})
}

// SetLeases sets who decides about exact limits, before Install is called. Without it each process may run one event of
// each worker.
func (d *Dispatcher) SetLeases(l Leases) Lessee {
	d.leases, d.gates.workers.leases = l, l != nil
	return Lessee{d}
}

// Lessee tells a Dispatcher which leases its process has.
type Lessee struct{ d *Dispatcher }

// Grant says that this process has the lease of a worker from now on, for a term that no earlier lease had. It returns
// false when no event needs it any more: nothing was granted. It may be called from any goroutine.
func (l Lessee) Grant(ownerName, worker string, term uint64) bool {
	granted := false
	l.withLease(ownerName, worker, func(o *owner, r *route, fx *effects) {
		if r.lease != wanted {
			return
		}
		if r.waiting.n == 0 && r.queued == 0 && !r.asked {
			r.lease = unwanted
			return
		}
		r.lease, r.term, r.asked, granted = held, term, false, true
		o.admitWaiting(r, fx)
	})
	return granted
}

// Withdraw starts no further event of a worker whose lease this process has, unless idle is set and the worker has
// events here. It returns true if no event of the worker runs under the lease, and none will. Otherwise
// Leases.GivenBack follows when the running ones have ended. It may be called from any goroutine.
func (l Lessee) Withdraw(ownerName, worker string, term uint64, idle bool) (gone bool) {
	gone = true
	l.withLease(ownerName, worker, func(o *owner, r *route, fx *effects) {
		if r.term != term || r.lease != held && r.lease != givenBack {
			return
		}
		gone = r.running == 0 && (!idle || r.waiting.n == 0 && r.queued == 0)
		switch {
		case gone:
			r.lease = unwanted
			o.seeLease(r, fx)
		case !idle:
			r.lease = givenBack
		}
	})
	return gone
}

// Lapse says that the lease of a worker could not be renewed, so another process may get it. It ends the worker's runs:
// those that wait at once, the others when they next wait or reach a limit. It may be called from any goroutine.
func (l Lessee) Lapse(ownerName, worker string, term uint64) {
	var halts []*events.Signal
	l.withLease(ownerName, worker, func(o *owner, r *route, fx *effects) {
		if r.term != term || r.lease != held && r.lease != givenBack {
			return
		}
		halts = append(halts, r.leased...)
		r.lease = unwanted
		o.seeLease(r, fx)
	})
	for _, h := range halts {
		h.Fire()
	}
}

// withLease changes the lease of a worker.
func (l Lessee) withLease(ownerName, worker string, change func(o *owner, r *route, fx *effects)) {
	l.d.locked(func(_ time.Time, fx *effects) {
		if o := l.d.owners[ownerName]; o != nil {
			if r := o.route(worker); r != nil {
				change(o, r, fx)
				l.d.changed(o)
			}
		}
	})
}

// Lost reports that code of w, in a run that began at the given time, cost a thread. It may be called from any
// goroutine.
func (d *Dispatcher) Lost(w *workers.Worker, began time.Time) {
	if guard.CrashSuspects.Off() {
		return
	}
	now := time.Now()
	d.mu.Lock()
	worker, owner := d.gates.crashes.lost(w, began, now)
	d.mu.Unlock()
	d.log.Error().Str("owner", w.Owner).Str("worker", w.Name).Str("version", w.Version).
		Time("worker_refused_until", worker.until).Time("owner_refused_until", owner.until).
		Msg("a worker cost this process a thread: its events are refused for some time")
}

// Crashes is what processes of a fleet tell each other about who ends threads and processes. Any goroutine may call the
// methods.
type Crashes struct {
	mu *sync.Mutex // Dispatcher.mu
	of *crashes
}

// Crashes returns what is known of crashes here.
func (d *Dispatcher) Crashes() Crashes { return Crashes{&d.mu, &d.gates.crashes} }

// Bans returns the bans for other processes.
func (c Crashes) Bans() []Ban {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.of.export(time.Now())
}

// HearBans takes the bans of another process of the fleet.
func (c Crashes) HearBans(all []Ban) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	for _, b := range all {
		c.of.learn(b, now)
	}
}

// Suspect takes what a supervisor knows of crashes.
func (c Crashes) Suspect(all []Suspect) {
	if guard.CrashSuspects.Off() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	for _, s := range all {
		c.of.suspected(s, now)
	}
}

// Through reports that all parked events of an owner were submitted again. parks is how many events of it this
// Dispatcher had settled with Park then. If it has settled more since, the report is outdated: Through does nothing and
// returns false. Otherwise the count starts again at zero. It may be called from any goroutine and does not block.
func (d *Dispatcher) Through(ownerName string, parks uint64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.parks[ownerName] != parks {
		return false
	}
	delete(d.parks, ownerName)
	if o := d.owners[ownerName]; o != nil {
		o.overflow.through()
	}
	return true
}
