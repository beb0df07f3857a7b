package dispatch

import (
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
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
	refuse(e *lifecycle.Delivery, now time.Time) *events.Failure
}

// gates are all rules about single events. Each owns its state. They are called by their types: every event passes
// them, and calls by an interface cost 6 % of its instructions in dispatch.
type gates struct {
	owners  ownerLimit
	workers workerLimit
	bans    bans
	trials  trials
}

var (
	_ = []gate{(*ownerLimit)(nil), (*workerLimit)(nil)}
	_ = []filter{(*bans)(nil), (*trials)(nil)}
)

// admit reports whether all gates admit the item.
func (g *gates) admit(it *item) bool { return g.owners.admit(it) && g.workers.admit(it) }

func (g *gates) started(r *run) {
	g.owners.started(r)
	g.workers.started(r)
}

func (g *gates) ended(r *run, fx *effects) {
	g.owners.ended(r, fx)
	g.workers.ended(r, fx)
}

// refuse returns why the event is not run, or nil, and its version.
func (g *gates) refuse(e *lifecycle.Delivery, r *route, now time.Time) (*version, *events.Failure) {
	v, f := refuse(e, r, now)
	if f == nil && len(g.bans.of) > 0 {
		f = g.bans.refuse(e, now)
	}
	if f == nil && len(g.trials.suspects) > 0 {
		f = g.trials.refuse(e, now)
	}
	return v, f
}
