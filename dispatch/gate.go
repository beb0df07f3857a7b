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

// gates are all rules about single events. Each owns its state. They are called by their types: every event passes
// them, and calls by an interface cost 6 % of its instructions in dispatch.
type gates struct {
	owners  ownerLimit
	workers workerLimit
	crashes crashes
}

var _ = []gate{(*ownerLimit)(nil), (*workerLimit)(nil)}

// admit reports whether the limits admit the item.
func (g *gates) admit(it *item) bool { return g.owners.admit(it) && g.workers.admit(it) }

func (g *gates) started(r *run) {
	g.owners.started(r)
	g.workers.started(r)
	g.crashes.started(r)
}

func (g *gates) ended(r *run, now time.Time, fx *effects) {
	g.owners.ended(r, fx)
	g.workers.ended(r, fx)
	g.crashes.ended(r, now)
}

// refuse returns why the event is not to be run at all, or nil, and its version. It is asked when an event comes, and
// again before it starts. What it refuses is settled.
func (g *gates) refuse(e *lifecycle.Delivery, r *route, now time.Time) (*version, *events.Failure) {
	v, f := refuse(e, r, now)
	if f == nil && len(g.crashes.of) > 0 {
		f = g.crashes.refuse(e, now)
	}
	if f != nil {
		g.crashes.done(e, now)
	}
	return v, f
}

// crashes is the account of who ends processes and threads, and what follows for later events. It has two parts:
//
//   - bans: workers and owners. Lost threads, the supervisor and other processes name them. Their events are refused
//     for a time.
//   - quarantine: single events of the stream. Their deliveries are counted. They run watched, alone in the end, and
//     are refused after a crash then.
//
// Both are needed: only an event of the stream has a count of deliveries, and it may be the only bad one of a good
// worker. A worker that costs threads or dies of direct events can only be named as a whole.
//
// refuse, started and ended are called for each event, as those of the limits are. takes, takesBack and next
// concern events that wait in the quarantine and not in the queues of their owners. lost, suspected and learn add what
// became known. step does what is due, and due says when. d.mu must be held for all methods.
type crashes struct {
	bans
	quarantine
}

// Events of a paused owner or worker do not start, and take no room in this process meanwhile. Those of the stream are
// settled with Hold or HoldWorker, so that they wait among the parked ones. Direct ones, which are stored nowhere, are
// refused. Whoever queues an event asks hold first, and PolicySet takes those out that were queued before. Only the
// quarantine may have some of them: it asks when it takes one.

// holds reports whether an event of the owner must not start. A run of a paused owner that has begun may still call
// other workers: it would fail otherwise. A worker that is paused itself is not called.
func (l *ownerLimit) holds(o *owner, e *lifecycle.Delivery) bool {
	p := l.cfg.Catalog.Policy(o.name)
	if e.Service != nil {
		return p.WorkerPaused(e.Worker)
	}
	return p.IsPaused(e.Worker)
}

// paused reports whether an event whose route is set must not start.
func (b *backlog) paused(it *item) bool {
	return it.route.owner.overflow.paused && b.gates.owners.holds(it.route.owner, it.event)
}

// hold settles an event that must not start, and returns true. v is its version. The event must be in no queue, or
// leave it now.
func (b *backlog) hold(o *owner, e *lifecycle.Delivery, v *version, now time.Time, fx *effects) bool {
	if !o.overflow.paused || !b.gates.owners.holds(o, e) {
		return false
	}
	policy, order := b.cfg.Catalog.Policy(o.name), lifecycle.Hold
	if policy.WorkerPaused(e.Worker) {
		order = lifecycle.HoldWorker
	}
	b.gates.crashes.done(e, now)
	if e.Direct() {
		paused := e.Target()
		if order == lifecycle.Hold {
			paused = "owner " + o.name
		}
		f := events.Fail(events.ReasonUnavailable, "%s is paused: try again later", paused)
		fx.settle = append(fx.settle, b.refused(e, v, f))
		return true
	}
	o.overflow.hold(policy.AllPaused(), e.Parked)
	if !e.Parked {
		b.parks[o.name]++
	}
	b.metrics.parked++
	fx.settle = append(fx.settle, lifecycle.Settlement{Event: e, Order: order})
	return true
}

// holdQueued takes the events out of an owner's queues that must not start any more.
func (b *backlog) holdQueued(o *owner, now time.Time, fx *effects) {
	if !o.overflow.paused {
		return
	}
	b.filter(o, func(it item) bool {
		v, _ := it.route.resolve(it.event)
		return !b.hold(o, it.event, v, now, fx)
	}, fx)
}
