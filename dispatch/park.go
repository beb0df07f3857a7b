package dispatch

import (
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// park decides that e is parked. Later events of its owner go behind it, until the settler reports that all parked ones
// are through.
func (b *backlog) park(o *owner, e *events.Event, fx *effects) {
	o.full = o.full || o.held() >= o.maxQueued
	o.parked = true
	if !e.Parked { // it goes back to its place
		o.parking = true
		b.parks[o.name]++
	}
	b.metrics.parked++
	fx.settle = append(fx.settle, lifecycle.Settlement{Event: e, Outcome: lifecycle.Outcome{Verdict: lifecycle.Park}})
}

// unused reports room again after an unparked event e that takes no place in its owner's queue. o is nil if the owner
// is unknown.
func (b *backlog) unused(o *owner, e *events.Event, fx *effects) {
	switch {
	case !e.Parked:
	case o != nil:
		o.freed++
		b.makeRoom(o, fx)
	default:
		fx.room = append(fx.room, room{e.Owner, parkedSlack})
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
		o.parking, o.parked = false, false
	}
	return true
}
