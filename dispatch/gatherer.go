package dispatch

import (
	"slices"
	"time"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

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

// weight is how many bytes of a batch an event takes.
func weight(e *lifecycle.Delivery) int {
	n := len(e.Body)
	for name, values := range e.Header {
		for _, value := range values {
			n += len(name) + len(value)
		}
	}
	return n
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
