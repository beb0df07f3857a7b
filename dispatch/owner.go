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

	queue    queue
	waiting  int       // items that wait for the limits of their workers instead
	extra    int       // events of its batches, incomplete, queued or running, beside the one that counts for each item or run
	suspects int       // events that wait in the quarantine instead
	soonest  time.Time // no queued event has a deadline before this; zero = none has one
	counted  int       // part of backlog.runnable

	// What the parts of the Dispatcher keep of it. Each type has the methods that change it.
	places     // ownerlimit.go
	overflow   // backlog.go
	gatherings // gatherer.go
	usage      // shares.go
	account    // fair_queue.go
	position   // fair_queue.go
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
	if v.warm&^thread != 0 && v.homeThread() != thread && !o.leftTo(soon&v.homeThread(), v) {
		v.keep = now.Add(keepSpare)
	}
}

// installed returns that version of the worker. It returns nil if it is not installed, or not any more.
func installed(owners map[string]*owner, w *workers.Worker) *version {
	if o := owners[w.Owner]; o != nil && o.routes[w.Name] != nil {
		return o.routes[w.Name].version(w.Version)
	}
	return nil
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
