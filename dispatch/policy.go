package dispatch

import (
	"time"

	"github.com/pinwheel-run/pinwheel/events"
)

// SetPolicy says what an owner may have from now on; the zero Policy is what the configuration says. Of a policy only the shares of
// events and of CPU time are dispatch's.
func (d *Dispatcher) SetPolicy(name string, p events.Policy) {
	var t tell
	now := time.Now()
	d.mu.Lock()
	if p == (events.Policy{}) {
		delete(d.policies, name)
	} else {
		d.policies[name] = p
	}
	if o := d.owners[name]; o != nil {
		d.rebound(o, &t)
	}
	d.rouse(now, &t)
	d.mu.Unlock()
	d.out(&t)
}

// applyPolicy notes in an owner what its policy says.
func (d *Dispatcher) applyPolicy(o *owner) {
	p := d.policies[o.name]
	o.quantum = quantum * time.Duration(max(1, p.Weight))
	o.credit = min(o.credit, o.quantum)
	o.maxRunning = d.share(p.MaxRunning, d.cfg.OwnerMaxRunning, p.FleetMaxRunning)
	o.maxQueued = d.share(p.MaxQueued, d.cfg.OwnerMaxQueued, p.FleetMaxQueued)
}

// rebound applies what an owner that is there may have from now on.
func (d *Dispatcher) rebound(o *owner, t *tell) {
	d.applyPolicy(o)
	d.changed(o)
	d.makeRoom(o, t)
}

// share is a limit here: the owner's own or the configured one, and no more than its part of what the fleet may have.
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

// SetProcesses says how many processes the fleet has, this one included; what owners may have in all of them is shared out anew.
func (d *Dispatcher) SetProcesses(n int) {
	n = max(1, n)
	var t tell
	now := time.Now()
	d.mu.Lock()
	if n != d.processes {
		d.processes = n
		for name, p := range d.policies {
			if o := d.owners[name]; o != nil && (p.FleetMaxRunning > 0 || p.FleetMaxQueued > 0) {
				d.rebound(o, &t)
			}
		}
	}
	d.rouse(now, &t)
	d.mu.Unlock()
	d.out(&t)
}
