package dispatch

import (
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

const (
	// aloneAfter is after how many crashes of processes an event runs alone.
	aloneAfter = 2
	// firstSuspects is how many suspects run at once at first. Each suspect that ends raises the number by one.
	firstSuspects = 4
	// aloneFor is how long other events are delayed, at first, for one that must run alone: until those running have
	// ended, and again while it runs. It doubles with each further crash, so that in the end a guilty event crashes alone.
	aloneFor = 2 * time.Second
	// workFor is how many times the delay normal work then continues before the next event runs alone.
	workFor = 4
)

// quarantine holds events during whose runs processes died, apart from their owners' queues. d.mu must be
// held for all methods.
//
// An event with one crash is a suspect. Before it runs, its Settlement says Watch: the settler records that it runs and
// submits it again, and the next thread starts it. So only a crash while it really ran counts as its second. Few
// suspects run at once, so that few innocent ones are beside a guilty one. After two crashes an event runs alone, and
// only a crash then, which no other event can have caused, makes it dead.
type quarantine struct {
	b        *backlog
	suspects queue                            // not watched yet
	ready    queue                            // watched: to be started next
	watched  int                              // suspects that are being recorded, ready or running
	most     int                              // limit of watched
	noted    map[*lifecycle.Delivery]struct{} // watched or about to be, and not yet running

	calls queue // service calls that start in any phase

	waiting queue // must run alone
	phase   phase
	event   *lifecycle.Delivery // it runs alone, or is about to
	started bool                // a thread has it
	since   time.Time           // when the delay of others began
	due     time.Time           // when the phase ends by itself
	free    time.Time           // no event runs alone before this time
	alone   uint64              // how many ran alone, for the metrics
}

// phase says whether other events may start while one must run alone.
type phase uint8

const (
	open     phase = iota // normal operation
	clearing              // nothing new is started; running events end
	noting                // the settler records quarantine.event
	alone                 // quarantine.event is ready or runs
)

// idle reports whether it is empty, which it nearly always is.
func (q *quarantine) idle() bool {
	return q.phase == open && q.suspects.n == 0 && q.ready.n == 0 && q.waiting.n == 0 && q.calls.n == 0
}

// queued returns how many events of backlog.queued wait here.
func (q *quarantine) queued() int { return q.suspects.n + q.ready.n + q.waiting.n + q.calls.n }

// next returns when the phase changes by itself; zero = never.
func (q *quarantine) next() time.Time {
	if q.phase == open && q.waiting.n > 0 {
		return q.free
	}
	return q.due
}

// patience returns how long others are delayed for an event with so many crashes. No run is longer than the last step.
func patience(crashes int) time.Duration {
	longest := workers.MaxLimits.Wall.Duration() + time.Minute
	return min(aloneFor<<min(max(0, crashes-aloneAfter), 20), longest)
}

// suspect takes an event during whose run a process died.
func (q *quarantine) suspect(e *lifecycle.Delivery, now time.Time, fx *effects) {
	it := item{event: e, since: now}
	switch {
	case e.Watched && q.phase == noting && q.event == e:
		q.phase, q.due = alone, now.Add(patience(e.Crashes))
		q.b.lookAgain()
		q.ready.pushBack(it)
	case e.Watched && e.Crashes >= aloneAfter: // recorded too late: others run again
		delete(q.noted, e)
		fx.settle = append(fx.settle, returned(e))
		return
	case e.Watched:
		q.ready.pushBack(it)
	case e.Crashes >= aloneAfter:
		q.waiting.pushBack(it)
		q.b.owners[e.Owner].suspects++
	default:
		q.suspects.pushBack(it)
		q.b.owners[e.Owner].suspects++
	}
	q.b.queued++
	q.b.noteDeadline(e.Deadline)
}

// step advances the quarantine as far as possible. It must be called after every change of what runs or waits.
func (q *quarantine) step(now time.Time, fx *effects) {
	if q.phase == noting && !now.Before(q.due) {
		q.release(now) // the settler takes too long; the event is returned when it comes back
	}
	if q.phase == alone && !now.Before(q.due) {
		q.unhold(now, fx)
	}
	if q.phase == open && q.waiting.n > 0 && (!now.Before(q.free) || q.b.running == 0 && q.b.queued == q.waiting.n) {
		q.phase, q.since = clearing, now
		q.due = now.Add(patience(q.waiting.front().event.Crashes))
		q.b.lookAgain()
		q.urgeAll(fx)
	}
	if q.phase == clearing && (q.b.running == 0 && q.watched == 0 || q.waiting.n == 0 || !now.Before(q.due)) {
		q.isolate(now, fx)
	}
	if q.phase == open {
		q.admit(now, fx)
	}
	for i := range q.ready.n { // no thread is woken for those that need a lease
		e := q.ready.at(i).event
		if o, r := q.b.owners[e.Owner], routeOf(q.b.owners, e); r != nil && !r.mayStart() {
			o.askLease(r, fx)
		}
	}
}

// admit has suspects watched, but only as many as can start at once: one that waits must not count as one that runs.
func (q *quarantine) admit(now time.Time, fx *effects) {
	for n := q.suspects.n; n > 0 && q.watched < q.most && q.b.running+len(q.noted) < q.b.cfg.Threads*q.b.cfg.Slots; n-- {
		if !q.mayStart(q.suspects.front().event, fx) {
			q.suspects.pushBack(q.suspects.popFront())
		} else if e := q.unqueue(&q.suspects, now, fx); e != nil {
			q.watched++
			q.note(e, lifecycle.Watch, fx)
		}
	}
}

// mayStart reports whether the owner and the worker of e may have one more running, counting those about to start.
func (q *quarantine) mayStart(e *lifecycle.Delivery, fx *effects) bool {
	o, r := q.b.owners[e.Owner], routeOf(q.b.owners, e)
	if o == nil || r == nil {
		return true // refused later
	}
	of, like := o.running, r.running
	for other := range q.noted {
		if other.Owner == e.Owner {
			of++
			if other.Worker == e.Worker {
				like++
			}
		}
	}
	if !r.mayStart() {
		o.askLease(r, fx)
		return false
	}
	return of < o.maxRunning && (r.limit == 0 || like < r.share)
}

// isolate has the next event recorded that must run alone.
func (q *quarantine) isolate(now time.Time, fx *effects) {
	for q.waiting.n > 0 {
		if e := q.unqueue(&q.waiting, now, fx); e != nil {
			q.phase, q.event, q.due = noting, e, now.Add(patience(e.Crashes))
			q.b.lookAgain()
			order := lifecycle.Watch
			if q.b.running == 0 && q.watched == 0 {
				order = lifecycle.WatchAlone
			}
			q.note(e, order, fx)
			return
		}
	}
	q.release(now)
}

// unqueue takes the first event of a queue. It returns nil when the event is refused and settled.
func (q *quarantine) unqueue(from *queue, now time.Time, fx *effects) *lifecycle.Delivery {
	e := from.popFront().event
	defer q.unsuspect(from, e, fx)
	if v, f := q.b.gates.refuse(e, routeOf(q.b.owners, e), now); f != nil {
		fx.settle = append(fx.settle, q.refused(e, v, f, now))
		return nil
	}
	return e
}

// unsuspect updates the counts after e left that queue of the quarantine. Until it is watched, an event takes room of
// its owner.
func (q *quarantine) unsuspect(from *queue, e *lifecycle.Delivery, fx *effects) {
	q.b.queued--
	if from == &q.ready || from == &q.calls {
		return
	}
	o := q.b.owners[e.Owner]
	o.suspects--
	o.overflow.left(1)
	q.b.makeRoom(o, fx)
	q.b.forget(o)
}

// note has the settler record that e is about to run, as the order says, and submit it again.
func (q *quarantine) note(e *lifecycle.Delivery, order lifecycle.Order, fx *effects) {
	if q.noted == nil {
		q.noted = make(map[*lifecycle.Delivery]struct{})
	}
	q.noted[e] = struct{}{}
	fx.settle = append(fx.settle, lifecycle.Settlement{Event: e, Order: order})
}

// unhold lets others run beside the event that was alone long enough. If that has not started, it goes back to the
// stream.
func (q *quarantine) unhold(now time.Time, fx *effects) {
	if q.started {
		fx.settle = append(fx.settle, lifecycle.Settlement{Event: q.event, Order: lifecycle.Share})
	} else {
		q.ready.filter(func(it *item) bool { return it.event != q.event })
		delete(q.noted, q.event)
		q.b.queued--
		fx.settle = append(fx.settle, returned(q.event))
	}
	q.release(now)
}

// release ends the delay of other events, and reserves time for them.
func (q *quarantine) release(now time.Time) {
	q.phase, q.event, q.started, q.due = open, nil, false, time.Time{}
	q.free = now.Add(workFor * now.Sub(q.since))
	if q.waiting.n > 0 {
		q.b.lookAgain()
	}
}

// refused returns the settlement of an event that is not run.
func (q *quarantine) refused(e *lifecycle.Delivery, v *version, f *events.Failure, now time.Time) lifecycle.Settlement {
	q.left(e, now)
	return q.b.refused(e, v, f)
}

// left must be called before a verdict on an event of the quarantine, which leaves it: a watched one, or any other that
// may be.
func (q *quarantine) left(e *lifecycle.Delivery, now time.Time) {
	if !e.Watched {
		return
	}
	delete(q.noted, e)
	switch {
	case e == q.event:
		q.release(now)
	case e.Crashes < aloneAfter:
		if q.watched--; q.watched == 0 && q.suspects.n == 0 {
			q.most = firstSuspects
		} else {
			q.most++
		}
	}
}

// nextWatched takes the first watched event whose owner may have one more running, to be started. v is nil if there is
// none.
func (q *quarantine) nextWatched(now time.Time, fx *effects) (it item, v *version) {
	for n := q.ready.n; n > 0; n-- {
		it := q.ready.popFront()
		q.b.queued--
		it.route = routeOf(q.b.owners, it.event)
		v, f := q.b.gates.refuse(it.event, it.route, now)
		if f != nil {
			fx.settle = append(fx.settle, q.refused(it.event, v, f, now))
			continue
		}
		if !q.b.gates.admit(&it) {
			q.ready.pushBack(it)
			q.b.queued++
			continue
		}
		if it.event == q.event {
			q.started = true
			q.alone++
		}
		delete(q.noted, it.event)
		return it, v
	}
	return item{}, nil
}

// requeueWatched takes back a watched event that the thread could not start.
func (q *quarantine) requeueWatched(r *run) {
	if r.Event == q.event {
		q.started = false
	}
	q.noted[r.Event] = struct{}{}
	q.ready.pushFront(item{event: r.Event, since: r.since})
	q.b.queued++
}

// startable returns how many events could start now, by the class of their owners. Watched ones count as light.
func (q *quarantine) startable() (n [classes]int) {
	if q.idle() {
		return q.b.runnable
	}
	if q.phase == open {
		n = q.b.runnable
	}
	n[light] += q.calls.n
	for i := range q.ready.n {
		e := q.ready.at(i).event
		o, r := q.b.owners[e.Owner], routeOf(q.b.owners, e)
		if o == nil || r == nil || q.b.gates.admit(&item{event: e, route: r}) {
			n[light]++
		}
	}
	return n
}

// expireQuarantine settles events in it whose deadline has passed, and notes the next deadline.
func (q *quarantine) expireQuarantine(now time.Time, fx *effects) {
	if q.queued() == 0 {
		return
	}
	for _, part := range []*queue{&q.suspects, &q.ready, &q.waiting, &q.calls} {
		part.filter(func(it *item) bool {
			if expired(it.event, now) {
				v, f := q.b.gates.refuse(it.event, routeOf(q.b.owners, it.event), now)
				fx.settle = append(fx.settle, q.refused(it.event, v, f, now))
				q.unsuspect(part, it.event, fx)
				return false
			}
			q.b.noteDeadline(it.event.Deadline)
			return true
		})
	}
}

// emptyQuarantine returns all waiting events, because the process drains.
func (q *quarantine) emptyQuarantine(fx *effects) {
	for _, part := range []*queue{&q.suspects, &q.ready, &q.waiting} {
		for part.n > 0 {
			e := part.popFront().event
			fx.settle = append(fx.settle, returned(e))
			q.unsuspect(part, e, fx)
		}
	}
	q.phase, q.event = open, nil
	clear(q.noted)
}

// Service calls start in every phase of the quarantine.

// urge has a call start although no other event may: a run that must end first waits for it.
func (q *quarantine) urge(it item) {
	q.calls.pushBack(it)
	q.b.queued++
	q.b.noteDeadline(it.event.Deadline)
}

// urgeAll urges the calls that wait in the queues of their owners.
func (q *quarantine) urgeAll(fx *effects) {
	for _, o := range q.b.owners {
		urged := q.calls.n
		for o.queue.n > 0 && o.queue.front().event.Service != nil {
			it := o.dequeue()
			q.calls.pushBack(it)
			o.leaveRoute(it.route, fx)
		}
		if q.calls.n != urged {
			q.b.changed(o)
			q.b.forget(o)
		}
	}
}

// nextCall takes the first urged call whose worker may start one, to be started. v is nil if there is none.
func (q *quarantine) nextCall(now time.Time, fx *effects) (it item, v *version) {
	for n := q.calls.n; n > 0; n-- {
		it := q.calls.popFront()
		it.route = routeOf(q.b.owners, it.event)
		v, f := q.b.gates.refuse(it.event, it.route, now)
		switch {
		case f != nil:
			fx.settle = append(fx.settle, q.refused(it.event, v, f, now))
		case !it.route.mayStart():
			q.calls.pushBack(it)
			continue
		}
		q.b.queued--
		if f == nil {
			return it, v
		}
	}
	return item{}, nil
}
