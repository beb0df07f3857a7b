package dispatch

import (
	"time"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

// owner is a tenant: its workers, its queue, and its place in the fair queue. An owner exists as long as it
// has a worker installed or an event in the dispatcher.
type owner struct {
	name   string
	routes map[string]*route
	// removed workers that have events here. The events that wait fail when they would start.
	removed map[string]*route

	quantum    time.Duration // CPU time that it gets in each round
	maxRunning int
	maxQueued  int

	queue    queue
	waiting  int // items that wait for the limits of their workers instead
	extra    int // events of its batches, incomplete, queued or running, beside the one that counts for each item or run
	gathered int // events of its incomplete batches
	gathers  []*gathering
	suspects int       // events that wait in the quarantine instead
	soonest  time.Time // no queued event has a deadline before this; zero = none has one
	running  int
	calling  int  // of running, how many wait for service calls
	away     int  // of running, how many run beside their threads
	counted  int  // part of backlog.runnable
	parking  bool // its events are parked, and new ones go behind them
	parked   bool // parked events come back or may do so: room is reported to the settler
	full     bool // its queue ran over, and is not half empty yet
	class    class
	window   int64         // of shares, in which spent was
	spent    time.Duration // CPU time
	freed    int           // events that left the queue since room was last reported to the settler

	// Written by fairQueue only.
	credit time.Duration // CPU time it may still start in its round; below zero is debt
	seen   int64         // the round up to which credit was granted
	due    int64         // the round in which it is served, so that a round ends without a scan of all owners
	passed int           // how often it was passed over
	list   *ownerList    // the list it stands in, nil = none
	prev   *owner
	next   *owner
}

// first returns the version that runs the first queued event of o, or one that no thread is warm for if none does.
func (o *owner) first() *version {
	it := o.queue.front()
	if v, _ := it.route.resolve(it.event); v != nil {
		return v
	}
	return &version{}
}

// leftTo reports whether the queued events of o are left to threads of a set, because these are warm for v, which runs
// the first one, and the events are not worth another context: that would cost more CPU time than it saves, and the
// memory of an isolate. A called event is not left: its caller waits, and the caller's thread asks for it at once
// (Dispatcher.Calling).
func (o *owner) leftTo(set threadSet, v *version) bool {
	if v.warm&set == 0 || o.queue.front().event.Service != nil {
		return false
	}
	if !v.warmCost.known { // the first run is slower than the others
		return !v.coldCost.known || v.coldCost.cpu <= worthAnother
	}
	return time.Duration(o.queue.n)*v.warmCost.usual <= worthAnother
}

// takenBy notes that the thread takes the first queued event of o. soon are threads that take events soon.
func (o *owner) takenBy(thread, soon threadSet, now time.Time) {
	v := o.first()
	if v.warm&^thread != 0 && v.keeper() != thread && !o.leftTo(soon&v.keeper(), v) {
		v.keep = now.Add(keepExtra)
	}
}

// installed returns that version of the worker. It returns nil if it is not installed, or not any more.
func installed(owners map[string]*owner, w *workers.Worker) *version {
	if o := owners[w.Owner]; o != nil && o.routes[w.Name] != nil {
		return o.routes[w.Name].version(w.Version)
	}
	return nil
}

// ownerList is a doubly linked list through the owners themselves.
type ownerList struct {
	first, last *owner
	n           int
}

func (l *ownerList) pushBack(o *owner) {
	o.list, o.prev, o.next = l, l.last, nil
	if l.last == nil {
		l.first = o
	} else {
		l.last.next = o
	}
	l.last = o
	l.n++
}

func (l *ownerList) remove(o *owner) {
	if o.prev == nil {
		l.first = o.next
	} else {
		o.prev.next = o.next
	}
	if o.next == nil {
		l.last = o.prev
	} else {
		o.next.prev = o.prev
	}
	o.list, o.prev, o.next = nil, nil, nil
	l.n--
}

// remove removes a worker. Its events that wait fail when they would start, in the order of all.
func (o *owner) remove(r *route) {
	r.remove()
	delete(o.routes, r.name)
	if r.empty() {
		return
	}
	o.keep(r)
	for r.waiting.n > 0 {
		o.queue.pushBack(r.waiting.popFront())
		o.waiting--
		r.queued++
	}
}

// keep has a removed route known as long as it has events.
func (o *owner) keep(r *route) {
	if o.removed == nil {
		o.removed = make(map[string]*route)
	}
	o.removed[r.name] = r
}

// route returns the route of a worker, also that of a removed worker while it has events.
func (o *owner) route(worker string) *route {
	if r := o.routes[worker]; r != nil {
		return r
	}
	return o.removed[worker]
}

// waitingRoutes calls f with each route of the owner that has waiting events.
func (o *owner) waitingRoutes(f func(*route)) {
	if o.waiting == 0 {
		return
	}
	for _, routes := range []map[string]*route{o.routes, o.removed} {
		for _, r := range routes {
			if r.waiting.n > 0 {
				f(r)
			}
		}
	}
}

// held is how many events wait, those for the limits of their workers and those that gather included. Of a batch that
// runs, all but one count too: only one counts as running.
func (o *owner) held() int { return o.queue.n + o.waiting + o.extra }

// class decides which threads run an owner's events.
type class uint8
