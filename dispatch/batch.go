package dispatch

import (
	"slices"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
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

// batch is the events of an item, if it has several or is of a queue handler.
type batch struct {
	items []item // without batches
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

// gatherer makes batches of events before these enter their owners' queues. d.mu must be held for all methods.
type gatherer struct {
	b       *backlog
	waiting []*gathering
	hasty   []*gathering // complete when Submit has seen all its events
	due     time.Time    // no batch in waiting is due before; zero = there is none
}

// batches reports whether an event of the version runs in a batch.
func (v *version) batches(e *events.Event) bool { return v.worker.Queue && e.Kind == events.Task }

// single reports whether an event must not run in a batch with others: it failed, and nobody asked for the next run; or
// it must not fail because of others, since it has no further run. A direct event does not wait for others.
func (v *version) single(e *events.Event) bool {
	return e.Direct() || e.Crashes > 0 || e.Attempt > 1 && (!e.Asked || e.Attempt-e.Spared >= v.retries.MaxAttempts)
}

// batchSize is how many events of an owner a batch of the version may have. Others of the owner must find room beside
// it.
func (a *gatherer) batchSize(o *owner, v *version) int {
	return max(1, min(v.batch.MaxSize, a.b.cfg.MaxBatch, o.maxQueued/2))
}

// weight is how many bytes of a batch an event takes.
func weight(e *events.Event) int {
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
	g.items = append(g.items, it)
	g.bytes += bytes
	o.extra++
	o.gathered++
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
	g := &gathering{owner: o, route: it.route, version: v, nth: len(o.gathers), index: -1}
	v.gathering = g
	o.gathers = append(o.gathers, g)
	wait := v.batch.MaxWait.Duration()
	if wait == 0 {
		a.hasty = append(a.hasty, g)
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

// dissolve takes a batch out of all lists. Its events are no longer counted.
func (a *gatherer) dissolve(g *gathering) []item {
	if g.version.gathering != g {
		return nil
	}
	g.version.gathering = nil
	o := g.owner
	last := len(o.gathers) - 1
	o.gathers[g.nth] = o.gathers[last]
	o.gathers[g.nth].nth = g.nth
	o.gathers[last] = nil
	o.gathers = o.gathers[:last]
	if waiting := a.waiting; g.index >= 0 {
		last := len(waiting) - 1
		waiting[g.index] = waiting[last]
		waiting[g.index].index = g.index
		waiting[last] = nil
		a.waiting = waiting[:last]
	}
	o.extra -= len(g.items)
	o.gathered -= len(g.items)
	a.b.queued -= len(g.items)
	return g.items
}

// complete puts a batch into its owner's queue.
func (a *gatherer) complete(g *gathering, fx *effects) {
	if items := a.dissolve(g); len(items) > 0 {
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

// completeHasty completes the batches that wait for no further Submit.
func (a *gatherer) completeHasty(fx *effects) {
	for i, g := range a.hasty {
		a.complete(g, fx)
		a.hasty[i] = nil
	}
	a.hasty = a.hasty[:0]
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
			a.gatherAgain(o, a.dissolve(g), fx)
		}
	}
	a.completeHasty(fx)
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

// sift keeps the events of an incomplete batch for which keep is true.
func (g *gathering) sift(keep func(item) bool) {
	kept := g.items[:0]
	g.bytes = 0
	for _, it := range g.items {
		if keep(it) {
			kept = append(kept, it)
			g.bytes += weight(it.event)
		}
	}
	g.owner.extra -= len(g.items) - len(kept)
	g.owner.gathered -= len(g.items) - len(kept)
	clear(g.items[len(kept):])
	g.items = kept
}

// sift keeps the events of an item for which keep is true. It returns how many have gone, and whether any is left.
func (it *item) sift(keep func(item) bool) (gone int, left bool) {
	if it.batch == nil {
		if keep(*it) {
			return 0, true
		}
		return 1, false
	}
	kept := it.batch.items[:0]
	for _, one := range it.batch.items {
		if keep(one) {
			kept = append(kept, one)
		}
	}
	gone = len(it.batch.items) - len(kept)
	clear(it.batch.items[len(kept):])
	it.batch.items = kept
	if len(kept) > 0 {
		it.event, it.since = kept[0].event, kept[0].since
	}
	return gone, len(kept) > 0
}

// n is the number of events of an item.
func (it *item) n() int {
	if it.batch == nil {
		return 1
	}
	return len(it.batch.items)
}

// refuseBatch takes out of the first item of o's queue, a batch, the events that cannot run and those that another
// version runs now. It returns the version of the others, nil when there are none: then the item is gone.
func (a *gatherer) refuseBatch(o *owner, now time.Time, fx *effects) *version {
	it := o.queue.front()
	var of *version
	var others []item
	n := 0
	gone, left := it.sift(func(one item) bool {
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
	o.freed += gone - len(others)
	if !left {
		o.extra++ // the item itself was not among them
		r := o.dequeue().route
		of = nil
		o.leaveRoute(r, fx)
	}
	if len(others) > 0 {
		a.gatherAgain(o, others, fx)
		a.completeHasty(fx)
	}
	return of
}

// items are the events of an attempt, to be queued again.
func (r *run) items() []item {
	if len(r.Batch) < 2 {
		return []item{{event: r.Event, route: r.route, since: r.since}}
	}
	list := make([]item, len(r.Batch))
	for i, e := range r.Batch {
		list[i] = item{event: e, route: r.route, since: r.since}
	}
	return list
}

// events are the events of an item, for an attempt of a queue handler.
func (it *item) events() []*events.Event {
	if it.batch == nil {
		return []*events.Event{it.event}
	}
	list := make([]*events.Event, len(it.batch.items))
	for i := range list {
		list[i] = it.batch.items[i].event
	}
	return list
}

// reportBatch judges how each event of a batch ended. It returns true when the batch goes back to its queue.
func (d *Dispatcher) reportBatch(r *run, end *lifecycle.End, now time.Time, fx *effects) (requeue bool) {
	took, n := now.Sub(r.Start), len(r.Batch)
	verdicts := make([]verdict, n)
	for i, e := range r.Batch {
		one, open := end.Of(i)
		of := d.ending(r, e, max(1, e.Attempt), &one, now)
		of.company = open && n > 1
		is := judge(of)
		if is.requeue {
			d.end(r, end, took, fx)
			return true
		}
		if end.Interrupted && end.Started {
			e.Interrupted++
		}
		if end.Started && !end.Interrupted {
			r.route.count(e, r.version, one.Failure != nil)
		}
		e.Asked, is.outcome.Asked = one.Retry || one.Interrupted, one.Retry
		if of.company && is.outcome.Verdict == lifecycle.Retry && is.outcome.Failure != nil {
			is.outcome.Batch = int32(n)
		}
		verdicts[i] = is
	}
	d.end(r, end, took, fx)
	brief := end.Started && !end.Waited && end.CPU <= briefCPU*time.Duration(n)
	for i, e := range r.Batch {
		d.quarantine.left(e, now)
		s := d.settlement(e, r.version, verdicts[i], took)
		s.Brief = brief
		if s.Outcome.Verdict == lifecycle.Ack && s.Outcome.Failure == nil && (e.Waits() || r.Worker.Idempotent) {
			s.Reply = &events.Reply{Body: batchResult}
			complete(s.Reply, e, r.Worker.Version, took)
		}
		fx.settle = append(fx.settle, s)
	}
	return false
}

// batchResult is the result of each event that a queue handler handled. Nobody changes it.
var batchResult = []byte(`{"success":true}`)
