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
		d.applyPolicy(o)
		d.changed(o)
		d.makeRoom(o, &t)
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
	o.maxRunning, o.maxQueued = d.cfg.OwnerMaxRunning, d.cfg.OwnerMaxQueued
	if p.MaxRunning > 0 {
		o.maxRunning = p.MaxRunning
	}
	if p.MaxQueued > 0 {
		o.maxQueued = p.MaxQueued
	}
}
