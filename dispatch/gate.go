package dispatch

import (
	"time"

	"github.com/pinwheel-run/pinwheel/events"
)

// gate lets events start, or has them wait until a run ends. A new rule about when events may start is a new gate. All
// methods are called with d.mu held.
type gate interface {
	// admit reports whether the item, whose route is set, may start now.
	admit(it *item) bool
	// started counts a run that starts, and ended one that has ended.
	started(r *run)
	ended(r *run, fx *effects)
}

// filter refuses events that are not to be run at all. It is asked when an event comes, and again before it starts.
// d.mu must be held.
type filter interface {
	// refuse returns why the event is not run, or nil.
	refuse(e *events.Event, now time.Time) *events.Failure
}

// gates are all rules about single events. Each owns its state.
type gates struct {
	owners  ownerLimit
	workers workerLimit
	bans    bans
	trials  trials
}

// all are the gates, in the order in which they are asked.
func (g *gates) all() [2]gate { return [...]gate{&g.owners, &g.workers} }

// filters are the filters, in the order in which they are asked.
func (g *gates) filters() [2]filter { return [...]filter{&g.bans, &g.trials} }

// admit reports whether all gates admit the item.
func (g *gates) admit(it *item) bool {
	for _, one := range g.all() {
		if !one.admit(it) {
			return false
		}
	}
	return true
}

func (g *gates) started(r *run) {
	for _, one := range g.all() {
		one.started(r)
	}
}

func (g *gates) ended(r *run, fx *effects) {
	for _, one := range g.all() {
		one.ended(r, fx)
	}
}

// refuse returns why the event is not run, or nil, and its version.
func (g *gates) refuse(e *events.Event, r *route, now time.Time) (*version, *events.Failure) {
	v, f := refuse(e, r, now)
	for _, one := range g.filters() {
		if f == nil {
			f = one.refuse(e, now)
		}
	}
	return v, f
}
