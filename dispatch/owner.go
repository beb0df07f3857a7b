package dispatch

import (
	"time"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// owner is a tenant: its workers, its queue, and its place in the fair queue. An owner exists as long as it
// has a worker installed or an event in the dispatcher.
type owner struct {
	name   string
	routes map[string]*route
	// removed workers that have events here. The events that wait fail when they would start.
	removed map[string]*route

	queue   queue
	waiting int       // items that wait for the limits of their workers instead
	extra   int       // events of its batches, incomplete, queued or running, beside the one that counts for each item or run
	soonest time.Time // no queued event has a deadline before this; zero = none has one
	counted int       // part of pool.runnable

	// What the parts of the Dispatcher keep of it. Each type has the methods that change it.
	home        // of the pools
	quarantined // of the quarantine
	places      // of the limit of owners
	overflow    // of the backlog
	gatherings  // of the gatherer
	usage       // of the shares
	account     // of the fair queue
	position    // in the fair queue
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

// chill notes that no thread of its pool holds a context of the owner.
func (o *owner) chill() {
	for _, r := range o.routes {
		for _, v := range r.versions {
			v.warm, v.home = 0, 0
		}
	}
}

// installed returns that version of the worker. It returns nil if it is not installed, or not any more.
func installed(owners map[string]*owner, w *workers.Worker) *version {
	if o := owners[w.Owner]; o != nil && o.routes[w.Name] != nil {
		return o.routes[w.Name].version(w.Version)
	}
	return nil
}

// routeOf returns the route of e, or nil when there is no such worker.
func routeOf(owners map[string]*owner, e *lifecycle.Delivery) *route {
	if o := owners[e.Owner]; o != nil {
		return o.routes[e.Worker]
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

// quarantined is how many events of an owner wait in the quarantine and not in its queue. d.mu must be held for all
// methods.
type quarantined struct {
	suspects int32 // they take room of the owner
	urgent   int32 // in pool.calls and pool.ready
}

// apart is how many events wait.
func (q *quarantined) apart() int { return int(q.suspects) + int(q.urgent) }

// places are those of an owner, and the attempts that take them. d.mu must be held for all methods.
type places struct {
	maxRunning int
	fleet      int // how many may run in all processes together; 0 = no limit
	running    int
	calling    int // of running, how many wait for service calls
	away       int // of running, how many run beside their threads
}

// free is how many attempts more there are places for.
func (p *places) free() int { return max(0, p.maxRunning-(p.running-p.calling)) }

// setCalling notes that an attempt waits for service calls, or that this is over. Meanwhile others may have its place.
// It gets the place back whether one is free or not.
func (p *places) setCalling(is bool) {
	if is {
		p.calling++
	} else {
		p.calling--
	}
}

// leave notes that an attempt runs beside its thread, or that this is over.
func (p *places) leave(is bool) {
	if is {
		p.away++
	} else {
		p.away--
	}
}

// overflow knows whether events of an owner are parked, for which its queue had no room. d.mu must be held for all
// methods.
type overflow struct {
	maxQueued int
	parking   bool // its events are parked, and new ones go behind them
	parked    bool // parked events come back or may do so: room is reported to the settler
	full      bool // its queue ran over, and is not half empty yet
	paused    bool // its policy pauses some of its workers, or all
	freed     int  // events that left the queue since room was last reported to the settler
}

// park notes that an event is parked while so many wait. again: it was parked before, and goes back to its place.
func (f *overflow) park(held int, again bool) {
	f.full = f.full || held >= f.maxQueued
	f.parked = true
	f.parking = f.parking || !again
}

// hold notes that an event is parked because of a pause. all: every worker is paused. Then new events go behind it when
// the owner is resumed. Those of other workers do not wait for a worker that is paused.
func (f *overflow) hold(all, again bool) {
	f.parked = true
	f.parking = f.parking || all && !again
}

// comesBack notes that a parked event is submitted. Perhaps another process parked it.
func (f *overflow) comesBack() { f.parked = true }

// through notes that no parked event is left.
func (f *overflow) through() { f.parking, f.parked = false, false }

// left notes that events left the queue.
func (f *overflow) left(n int) { f.freed += n }

// room is how much room is reported now, while so many wait; 0 = it is not reported.
func (f *overflow) room(waiting int) int {
	if !f.parked || 2*waiting >= f.maxQueued || !f.full && waiting > 0 && 4*f.freed < f.maxQueued {
		return 0
	}
	f.full, f.freed = false, 0
	return (f.maxQueued+1)/2 - waiting
}

// position is where an owner stands in a fairQueue.
type position struct {
	due    int64      // the round in which it is served, so that a round ends without a scan of all owners
	passed int        // how often it was passed over
	list   *ownerList // the list it stands in, nil = none
	prev   *owner
	next   *owner
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

// gathering is a batch that is not complete.
type gathering struct {
	owner   *owner
	route   *route
	version *version
	items   []item
	bytes   int
	due     time.Time // when it is complete in any case
	nth     int       // in owner.gathers
	index   int       // in gatherer.waiting, or -1
}

// gatherings are the incomplete batches of an owner. d.mu must be held for all methods.
type gatherings struct {
	gathers  []*gathering
	gathered int // events in them
}

func (l *gatherings) add(g *gathering) {
	g.nth = len(l.gathers)
	l.gathers = append(l.gathers, g)
}

// gather adds an event to one of the batches.
func (l *gatherings) gather(g *gathering, it item, bytes int) {
	g.items = append(g.items, it)
	g.bytes += bytes
	l.gathered++
}

// gone notes that events left one of the batches.
func (l *gatherings) gone(n int) { l.gathered -= n }

// remove removes a batch with its events.
func (l *gatherings) remove(g *gathering) {
	last := len(l.gathers) - 1
	l.gathers[g.nth] = l.gathers[last]
	l.gathers[g.nth].nth = g.nth
	l.gathers[last] = nil
	l.gathers = l.gathers[:last]
	l.gone(len(g.items))
}

// filter keeps the events of an incomplete batch for which keep is true.
func (g *gathering) filter(keep func(item) bool) {
	kept := g.items[:0]
	g.bytes = 0
	for _, it := range g.items {
		if keep(it) {
			kept = append(kept, it)
			g.bytes += weight(it.event)
		}
	}
	gone := len(g.items) - len(kept)
	g.owner.extra -= gone
	g.owner.gatherings.gone(gone)
	clear(g.items[len(kept):])
	g.items = kept
}
