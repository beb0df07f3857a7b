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
	gates   gates

	owners   map[string]*owner
	parks    map[string]uint64 // per owner with parked events, how many were parked: distinguishes the latest call of Through from an older one
	queues   [classes]fairQueue
	shares   shares
	runnable [classes]int // events that could start now, within the limits
	queued   int          // events in all queues
	running  int          // attempts that threads have
	draining bool         // no event of the stream starts any more

	soonest   time.Time     // no queued event has a deadline before this; zero = none has one
	deadlines chan struct{} // tells Run that something is due earlier
}

func newBacklog(cfg Config) backlog {
	return backlog{
		cfg:     cfg,
		metrics: &metrics{},
		gates: gates{
			owners:  newOwnerLimit(cfg),
			workers: workerLimit{limited: make(map[*route]struct{}), processes: 1},
		},
		owners:    make(map[string]*owner),
		parks:     make(map[string]uint64),
		shares:    shares{number: 2}, // owners begin with 0: neither this one nor the last
		deadlines: make(chan struct{}, 1),
	}
}

// forget frees an owner that has no workers and no events any more.
func (b *backlog) forget(o *owner) {
	if len(o.routes) == 0 && o.held() == 0 && o.suspects == 0 && o.running == 0 {
		delete(b.owners, o.name)
		if o.class == heavy {
			b.lighten(o)
		}
	}
}

// changed updates the count of runnable events and the owner's place in its fair queue after its queue or its running
// attempts changed. Next, which serves owners, updates the fair queue itself.
func (b *backlog) changed(o *owner) {
	b.recount(o)
	switch {
	case o.counted > 0 && o.list == nil:
		b.queues[o.class].enter(o)
	case o.counted == 0 && o.list != nil:
		b.queues[o.class].leave(o)
	}
}

func (b *backlog) recount(o *owner) {
	n := min(o.queue.n, b.gates.owners.places(o))
	b.runnable[o.class] += n - o.counted
	o.counted = n
}

// makeRoom reports room for an owner with parked events to the settler: after each quarter of a queue that left it, and
// whenever the queue is empty. Half of the queue is kept for events that arrive from the stream.
func (b *backlog) makeRoom(o *owner, fx *effects) {
	most := o.maxQueued
	waiting := o.held() + o.suspects
	if !o.parked || 2*waiting >= most || b.draining {
		return
	}
	if !o.full && waiting > 0 && 4*o.freed < most {
		return
	}
	o.full, o.freed = false, 0
	fx.room = append(fx.room, room{o.name, (most+1)/2 - waiting})
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

// routeOf returns the route of e, or nil when there is no such worker.
func routeOf(owners map[string]*owner, e *events.Event) *route {
	if o := owners[e.Owner]; o != nil {
		return o.routes[e.Worker]
	}
	return nil
}

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
