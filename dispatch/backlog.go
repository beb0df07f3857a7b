package dispatch

import (
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// backlog is the state that all parts of a Dispatcher share: the owners with their queues, and what is counted over
// them. d.mu must be held for all methods and fields but cfg and deadlines.
type backlog struct {
	cfg     Config
	metrics *metrics
	used    usages
	gates   gates

	owners   map[string]*owner
	parks    map[string]uint64 // how many events of each owner were parked: Through tells by it whether it is late
	pools    *pools            // the threads, and the fair queues in which the owners stand
	shares                     // which owners are heavy
	queued   int               // events in all queues
	running  int               // attempts that threads have
	draining bool              // no event of the stream starts any more

	soonest   time.Time     // no queued event has a deadline before this; zero = none has one
	deadlines chan struct{} // tells Run that something is due earlier
}

func newBacklog(cfg Config) backlog {
	pools := newPools(cfg)
	return backlog{
		cfg:     cfg,
		metrics: &metrics{},
		gates: gates{
			owners:  newOwnerLimit(cfg),
			workers: workerLimit{limited: make(map[*route]struct{}), processes: 1},
		},
		owners:    make(map[string]*owner),
		parks:     make(map[string]uint64),
		pools:     pools,
		shares:    shares{pools: pools, cfg: cfg, number: 2}, // owners begin with 0: neither this one nor the last
		deadlines: make(chan struct{}, 1),
	}
}

// know adds an owner to those that the dispatcher has.
func (b *backlog) know(o *owner) {
	b.owners[o.name] = o
	o.pool.enter(o)
}

// forget frees an owner that has no workers and no events any more.
func (b *backlog) forget(o *owner) {
	if len(o.routes) == 0 && o.held() == 0 && o.apart() == 0 && o.running == 0 && b.owners[o.name] == o {
		delete(b.owners, o.name)
		o.pool.leave(o)
		if o.class == heavy {
			b.lighten(o)
		}
	}
}

// changed updates the count of runnable events and the owner's place in its fair queue after its queue or its running
// attempts changed. Next, which serves owners, updates the fair queue itself.
func (b *backlog) changed(o *owner) {
	b.recount(o)
	b.pools.place(o)
}

func (b *backlog) recount(o *owner) {
	b.pools.count(o, min(o.queue.n, b.gates.owners.places(o)))
}

// makeRoom reports room for an owner with parked events to the settler: after each quarter of a queue that left it, and
// whenever the queue is empty. Half of the queue is kept for events that arrive from the stream.
func (b *backlog) makeRoom(o *owner, fx *effects) {
	if b.draining {
		return
	}
	if n := o.overflow.room(o.held() + int(o.suspects)); n > 0 {
		fx.room = append(fx.room, room{o.name, n})
	}
}

// push puts an item into its owner's queue.
func (b *backlog) push(o *owner, it item, front bool, fx *effects) {
	o.enqueue(it, front)
	if it.route.lease != noLease {
		o.seeLease(it.route, fx)
	}
	b.queued++
	b.noteOwnerDeadline(o, it.event.Deadline)
	b.changed(o)
}

// park decides that e is parked. Later events of its owner go behind it, until the settler reports that all parked ones
// are through.
func (b *backlog) park(o *owner, e *lifecycle.Delivery, fx *effects) {
	o.overflow.park(o.held(), e.Parked)
	if !e.Parked {
		b.parks[o.name]++
	}
	b.metrics.parked++
	fx.settle = append(fx.settle, lifecycle.Settlement{Event: e, Order: lifecycle.Park})
}

// unused reports room again after an unparked event e that takes no place in its owner's queue. o is nil if the owner
// is unknown.
func (b *backlog) unused(o *owner, e *lifecycle.Delivery, fx *effects) {
	switch {
	case !e.Parked:
	case o != nil:
		o.overflow.left(1)
		b.makeRoom(o, fx)
	default:
		fx.room = append(fx.room, room{e.Owner, parkedSlack})
	}
}

// rebound applies new limits to an existing owner. d.mu must be held.
func (b *backlog) rebound(o *owner, fx *effects) {
	b.gates.owners.apply(o)
	b.changed(o)
	b.makeRoom(o, fx)
}

// noteOwnerDeadline notes the deadline of an event that o queues.
func (b *backlog) noteOwnerDeadline(o *owner, deadline time.Time) {
	if deadline.IsZero() {
		return
	}
	if o.soonest.IsZero() || deadline.Before(o.soonest) {
		o.soonest = deadline
	}
	b.noteDeadline(deadline)
}

// noteDeadline makes sure that Run checks in time.
func (b *backlog) noteDeadline(deadline time.Time) {
	if !deadline.IsZero() && (b.soonest.IsZero() || deadline.Before(b.soonest)) {
		b.soonest = deadline
		b.lookAgain()
	}
}

// lookAgain has Run compute again when to check next.
func (b *backlog) lookAgain() {
	select {
	case b.deadlines <- struct{}{}:
	default:
	}
}

// filter keeps the waiting events of o for which keep is true.
func (b *backlog) filter(o *owner, keep func(item) bool, fx *effects) {
	before := o.held()
	var left []*route
	some := func(it *item) bool {
		gone, stays := it.filter(keep)
		if o.extra -= gone; !stays {
			o.extra++ // the item itself is not among them
		}
		return stays
	}
	o.queue.filter(func(it *item) bool {
		if some(it) {
			return true
		}
		it.route.queued--
		left = append(left, it.route)
		return false
	})
	o.waitingRoutes(func(r *route) {
		waiting := r.waiting.n
		r.waiting.filter(some)
		o.waiting -= waiting - r.waiting.n
	})
	for _, g := range o.gathers {
		g.filter(keep)
	}
	o.overflow.left(before - o.held())
	b.queued -= before - o.held()
	for _, r := range left {
		o.leaveRoute(r, fx)
	}
	b.changed(o)
	b.makeRoom(o, fx)
	b.forget(o)
}

// charge takes the CPU time that a run has taken so far from its owner's credit. d.mu must be held.
func (b *backlog) charge(r *run, cpu time.Duration) {
	if more := cpu - r.cost; more > 0 {
		r.owner.account.charge(more)
		r.cost = cpu
	}
	if more := cpu - r.spent; more > 0 {
		b.spend(r.owner, more)
		r.spent = cpu
	}
}

func (b *backlog) setAway(r *run, is bool) {
	if r.away == is {
		return
	}
	r.away = is
	r.owner.places.leave(is)
	if is {
		r.version.warm &^= r.warms() // its context went with it
	}
}

// refused returns the settlement of an event that is not run. Its reply names the version that would have run it.
func (b *backlog) refused(e *lifecycle.Delivery, v *version, f *events.Failure) lifecycle.Settlement {
	is := refusal(requestOf(e), f)
	// an event that crashed is worth keeping, one that is banned is not
	if e.Kind == events.Fetch && e.ReplyTo != "" && !e.CrashedAlone {
		is.outcome.Verdict = lifecycle.Ack
	}
	s := b.settlement(e, v, is, 0)
	s.Outcome.Version = ""
	return s
}

// settlement makes a Settlement of a verdict with an outcome. took is the time since the attempt started.
func (b *backlog) settlement(e *lifecycle.Delivery, v *version, is verdict, took time.Duration) lifecycle.Settlement {
	s := lifecycle.Settlement{Event: e, Outcome: is.outcome}
	if v != nil {
		s.Outcome.Version = v.worker.Version
		// a retry for which there is no room becomes a letter
		if is.outcome.Verdict == lifecycle.Dead || is.outcome.Verdict == lifecycle.Retry {
			s.Outcome.OnDead = v.worker.OnDead
		}
	}
	if f := is.outcome.Failure; f != nil {
		b.metrics.failed(f.Reason, is.outcome.Verdict)
		if is.reply && e.Waits() {
			s.Reply = e.FailureReply(f)
			complete(s.Reply, e, s.Outcome.Version, took)
		}
	}
	return s
}

// complete fills in the fields of a reply that the thread does not know.
func complete(r *events.Reply, e *lifecycle.Delivery, version string, took time.Duration) {
	r.EventID, r.Attempt, r.Version, r.Duration = e.ID, max(1, e.Attempt), version, took
}

func (b *backlog) expireOwner(o *owner, now time.Time, fx *effects) {
	o.soonest = time.Time{}
	b.filter(o, func(it item) bool {
		e := it.event
		if expired(e, now) {
			v, f := b.gates.refuse(e, it.route, now)
			fx.settle = append(fx.settle, b.refused(e, v, f))
			return false
		}
		if !e.Deadline.IsZero() && (o.soonest.IsZero() || e.Deadline.Before(o.soonest)) {
			o.soonest = e.Deadline
		}
		return true
	}, fx)
}
