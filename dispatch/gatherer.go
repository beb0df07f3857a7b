package dispatch

import (
	"slices"
	"time"
)

// A worker with a queue handler gets its tasks in batches. Tasks of one version gather until there are as many as a
// batch may have, or until the first of them has waited long enough. Then the batch is one item of its owner's queue
// and one run: for the turns of owners, for the limits of running events, and for the limits of the run. The end of the
// run is judged for each event.
//
// A batch that fails does not say which event made it fail. So each event about which the handler decided nothing runs
// alone the next time. An event beside one that always fails runs at most twice because of that.

// maxBatchBytes bounds the bodies and headers of a batch. A longer event is a batch of its own.
const maxBatchBytes = 1 << 20

// gatherer makes batches of events before these enter their owners' queues. d.mu must be held for all methods.
type gatherer struct {
	b         *backlog
	waiting   []*gathering
	immediate []*gathering // complete when Submit has seen all its events
	due       time.Time    // no batch in waiting is due before; zero = there is none
}

// batchSize is how many events of an owner a batch of the version may have. Others of the owner must find room beside
// it.
func (a *gatherer) batchSize(o *owner, v *version) int {
	return max(1, min(v.batch.MaxSize, a.b.cfg.MaxBatch, o.maxQueued/2))
}

// queue puts an event into its owner's queue, or has it gather with others.
func (a *gatherer) queue(o *owner, it item, v *version, front bool, fx *effects) {
	if !v.batches(it.event) || v.single(it.event) {
		a.b.push(o, it, front, fx)
		return
	}
	size, bytes := a.batchSize(o, v), weight(it.event)
	g := v.gathering
	if g != nil && g.bytes+bytes > maxBatchBytes {
		a.complete(g, fx)
		g = nil
	}
	if g == nil {
		g = a.gather(o, it, v)
	}
	o.gatherings.gather(g, it, bytes)
	o.extra++
	a.b.queued++
	a.b.noteOwnerDeadline(o, it.event.Deadline)
	if len(g.items) >= size || g.bytes >= maxBatchBytes {
		a.complete(g, fx)
	}
	for o.gathered > max(1, o.maxQueued/2) { // many workers of the owner gather: what waits must not take all of its room
		a.complete(o.gathers[0], fx)
	}
}

// gather begins a batch, with it as its first event.
func (a *gatherer) gather(o *owner, it item, v *version) *gathering {
	g := &gathering{owner: o, route: it.route, version: v, index: -1}
	v.gathering = g
	o.gatherings.add(g)
	wait := v.batch.MaxWait.Duration()
	if wait == 0 {
		a.immediate = append(a.immediate, g)
		return g
	}
	g.due = it.since.Add(wait)
	g.index = len(a.waiting)
	a.waiting = append(a.waiting, g)
	if a.due.IsZero() || g.due.Before(a.due) {
		a.due = g.due
		a.b.lookAgain()
	}
	return g
}

// remove takes a batch out of all lists. Its events are no longer counted.
func (a *gatherer) remove(g *gathering) []item {
	if g.version.gathering != g {
		return nil
	}
	g.version.gathering = nil
	o := g.owner
	o.gatherings.remove(g)
	if waiting := a.waiting; g.index >= 0 {
		last := len(waiting) - 1
		waiting[g.index] = waiting[last]
		waiting[g.index].index = g.index
		waiting[last] = nil
		a.waiting = waiting[:last]
	}
	o.extra -= len(g.items)
	a.b.queued -= len(g.items)
	return g.items
}

// complete puts a batch into its owner's queue.
func (a *gatherer) complete(g *gathering, fx *effects) {
	if items := a.remove(g); len(items) > 0 {
		a.pushBatch(g.owner, items, false, fx)
	}
}

// pushBatch queues events as one item. They are not counted yet.
func (a *gatherer) pushBatch(o *owner, items []item, front bool, fx *effects) {
	it := items[0]
	if len(items) > 1 {
		it.batch = &batch{items}
		o.extra += len(items) - 1
		a.b.queued += len(items) - 1
		for i := range items {
			a.b.noteOwnerDeadline(o, items[i].event.Deadline)
		}
	}
	a.b.push(o, it, front, fx)
}

// completeImmediate completes the batches that wait for no further Submit.
func (a *gatherer) completeImmediate(fx *effects) {
	for i, g := range a.immediate {
		a.complete(g, fx)
		a.immediate[i] = nil
	}
	a.immediate = a.immediate[:0]
}

// ripen completes the batches that are due.
func (a *gatherer) ripen(now time.Time, fx *effects) {
	if a.due.IsZero() || now.Before(a.due) {
		return
	}
	a.due = time.Time{}
	for i := 0; i < len(a.waiting); {
		g := a.waiting[i]
		if !now.Before(g.due) {
			a.complete(g, fx) // another one takes its place
			continue
		}
		if a.due.IsZero() || g.due.Before(a.due) {
			a.due = g.due
		}
		i++
	}
}

// regather has the gathering events of a worker gather again after its versions changed, or, if it is about to be
// removed, queues them.
func (a *gatherer) regather(o *owner, r *route, removed bool, fx *effects) {
	for _, g := range slices.Clone(o.gathers) {
		switch {
		case g.route != r:
		case removed:
			a.complete(g, fx)
		default:
			a.gatherAgain(o, a.remove(g), fx)
		}
	}
	a.completeImmediate(fx)
}

// gatherAgain queues events that are not counted, by the versions that run them now. What cannot run is refused when it
// would start.
func (a *gatherer) gatherAgain(o *owner, items []item, fx *effects) {
	for _, it := range items {
		if v, f := it.route.resolve(it.event); f == nil {
			a.queue(o, it, v, false, fx)
		} else {
			a.b.push(o, it, false, fx)
		}
	}
}

// refuseBatch takes out of the first item of o's queue, a batch, the events that cannot run and those that another
// version runs now. It returns the version of the others, nil when there are none: then the item is gone.
func (a *gatherer) refuseBatch(o *owner, now time.Time, fx *effects) *version {
	it := o.queue.front()
	var of *version
	var others []item
	n := 0
	gone, left := it.filter(func(one item) bool {
		v, f := a.b.gates.refuse(one.event, one.route, now)
		switch {
		case f != nil:
			fx.settle = append(fx.settle, a.b.refused(one.event, v, f))
			return false
		case of == nil:
			of = v
		}
		if v == of && v.batches(one.event) && !v.single(one.event) && n < a.batchSize(o, v) {
			n++
			return true
		}
		others = append(others, one)
		return false
	})
	o.extra -= gone
	a.b.queued -= gone
	o.overflow.left(gone - len(others))
	if !left {
		o.extra++ // the item itself was not among them
		r := o.dequeue().route
		of = nil
		o.leaveRoute(r, fx)
	}
	if len(others) > 0 {
		a.gatherAgain(o, others, fx)
		a.completeImmediate(fx)
	}
	return of
}
