package dispatch

import "github.com/pinwheel-run/pinwheel/events"

// park sets e aside. What comes of its owner from now on goes behind it, until the settler says that all are through.
func (d *Dispatcher) park(o *owner, e *events.Event, t *tell) {
	o.full = o.full || o.queue.n >= o.maxQueued
	o.parked = true
	if !e.Parked { // it goes back where it was
		o.parking = true
		d.parks[o.name]++
	}
	d.metrics.parked++
	t.settle = append(t.settle, events.Settlement{Event: e, Outcome: events.Outcome{Verdict: events.Park}})
}

// unused: e was brought because there was room, and takes no place in the queue of its owner, who may be unknown.
func (d *Dispatcher) unused(o *owner, e *events.Event, t *tell) {
	switch {
	case !e.Parked:
	case o != nil:
		o.freed++
		d.makeRoom(o, t)
	case d.roomer != nil:
		t.room = append(t.room, room{e.Owner, parkedSlack})
	}
}

// Through says that nothing of owner is parked any more, or what is left is submitted already, when parks of its events had been settled
// with Park by this Dispatcher. If more were since, it is of the past: it does nothing and returns false. Else the count begins anew, and
// the owner is forgotten here. It may be called from any goroutine and does not block.
func (d *Dispatcher) Through(ownerName string, parks uint64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.parks[ownerName] != parks {
		return false
	}
	delete(d.parks, ownerName)
	if o := d.owners[ownerName]; o != nil {
		o.parking, o.parked = false, false
	}
	return true
}
