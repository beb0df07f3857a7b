package dispatch

import (
	"time"

	"github.com/pinwheel-run/pinwheel/events"
)

// SetPolicy sets what an owner may use from now on. The zero Policy restores the configured limits. Of a policy,
// dispatch uses only the shares of events and of CPU time.
func (d *Dispatcher) SetPolicy(name string, p events.Policy) {
	d.locked(func(_ time.Time, fx *effects) {
		if p.IsZero() {
			delete(d.policies, name)
		} else {
			d.policies[name] = p
		}
		if o := d.owners[name]; o != nil {
			d.rebound(o, fx)
		}
	})
}

// applyPolicy sets the limits of an owner from its policy.
func (d *Dispatcher) applyPolicy(o *owner) {
	p := d.policies[o.name]
	o.quantum = quantum * time.Duration(max(1, p.Weight))
	o.credit = min(o.credit, o.quantum)
	o.maxRunning = d.share(p.MaxRunning, d.cfg.OwnerMaxRunning, p.FleetMaxRunning)
	o.maxQueued = d.share(p.MaxQueued, d.cfg.OwnerMaxQueued, p.FleetMaxQueued)
}

// rebound applies new limits to an existing owner.
func (d *Dispatcher) rebound(o *owner, fx *effects) {
	d.applyPolicy(o)
	d.changed(o)
	d.makeRoom(o, fx)
}

// share returns a limit of this process: the owner's own or the configured one, and at most its part of the limit of
// the fleet.
func (d *Dispatcher) share(own, configured, fleet int) int {
	n := configured
	if own > 0 {
		n = own
	}
	if fleet > 0 {
		n = min(n, max(1, fleet/d.processes))
	}
	return n
}

// SetProcesses sets how many processes the fleet has, including this one. Limits that hold for the whole fleet are
// divided again.
func (d *Dispatcher) SetProcesses(n int) {
	n = max(1, n)
	d.locked(func(_ time.Time, fx *effects) {
		if n != d.processes {
			d.processes = n
			for name, p := range d.policies {
				if o := d.owners[name]; o != nil && (p.FleetMaxRunning > 0 || p.FleetMaxQueued > 0) {
					d.rebound(o, fx)
				}
			}
			for r, o := range d.limited {
				d.limit(o, r, fx)
			}
		}
	})
}
