package dispatch

import (
	"time"

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
//
// Service calls start although no other event may: a run that must end first waits for them.
type quarantine struct {
	b        *backlog
	suspects queue                            // not watched yet
	urgent   int                              // events in pool.calls and pool.ready of all pools
	watched  int                              // suspects that are being recorded, ready or running
	most     int                              // limit of watched
	noted    map[*lifecycle.Delivery]struct{} // watched or about to be, and not yet running

	waiting queue // must run alone
	phase   phase
	event   *lifecycle.Delivery // it runs alone, or is about to
	since   time.Time           // when the delay of others began
	ends    time.Time           // when the phase ends by itself
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

// queued returns how many events of backlog.queued wait here.
func (q *quarantine) queued() int { return q.suspects.n + q.waiting.n + q.urgent }

// idle reports whether it is empty.
func (q *quarantine) idle() bool { return q.phase == open && q.queued() == 0 }

// due returns when the phase changes by itself; zero = never.
func (q *quarantine) due() time.Time {
	if q.phase == open && q.waiting.n > 0 {
		return q.free
	}
	return q.ends
}

// delayFor returns how long others are delayed for an event with so many crashes. No run is longer than the last step.
func delayFor(crashes int) time.Duration {
	return doubled(aloneFor, crashes-aloneAfter+1, workers.MaxLimits.Wall.Duration()+time.Minute)
}

// takes reports whether an event that is submitted waits here: one during whose run a process died, or a service call
// while other events may not start.
func (q *quarantine) takes(it item, now time.Time, fx *effects) bool {
	to := &q.suspects
	switch e := it.event; {
	case e.Service != nil && q.phase != open:
		to = &it.route.owner.pool.calls
	case e.Crashes == 0:
		return false
	case e.Watched && q.phase == noting && q.event == e:
		q.phase, q.ends = alone, now.Add(delayFor(e.Crashes))
		q.b.lookAgain()
		to = &it.route.owner.pool.ready
	case e.Watched && e.Crashes >= aloneAfter: // recorded too late: others run again
		delete(q.noted, e)
		fx.settle = append(fx.settle, returned(e))
		return true
	case e.Watched:
		to = &it.route.owner.pool.ready
	case e.Crashes >= aloneAfter:
		to = &q.waiting
	}
	q.enter(to, it)
	return true
}

// takesBack reports whether the event of an attempt that was not made waits here.
func (q *quarantine) takesBack(r *run) bool {
	it := item{event: r.Event, since: r.since}
	switch {
	case r.Event.Watched:
		q.noted[r.Event] = struct{}{}
		q.enter(&r.owner.pool.ready, it)
	case r.Event.Service != nil && q.phase != open:
		q.enter(&r.owner.pool.calls, it)
	default:
		return false
	}
	return true
}

// enter puts an event into one of the queues.
func (q *quarantine) enter(to *queue, it item) {
	to.pushBack(it)
	q.b.queued++
	q.b.noteDeadline(it.event.Deadline)
	o := q.b.owners[it.event.Owner]
	if to == &q.suspects || to == &q.waiting {
		o.suspects++
		return
	}
	q.wait(o, 1)
}

// wait counts events in pool.calls and pool.ready.
func (q *quarantine) wait(o *owner, n int) {
	q.urgent += n
	o.urgent += int32(n)
	q.b.pools.touch(o.pool)
}

// leave updates the counts after an event left that queue. Until it is watched, it takes room of its owner.
func (q *quarantine) leave(from *queue, e *lifecycle.Delivery, fx *effects) {
	q.b.queued--
	o := q.b.owners[e.Owner]
	if from == &q.suspects || from == &q.waiting {
		o.suspects--
		o.overflow.left(1)
		q.b.makeRoom(o, fx)
	} else {
		q.wait(o, -1)
	}
	q.b.forget(o)
}

// next takes the event that a thread of a pool starts before all others: a service call or a watched event. v is nil if
// there is none. Then others may start if the phase is open.
func (q *quarantine) next(p *pool, now time.Time, fx *effects) (it item, v *version) {
	if it, v = q.take(&p.calls, q.b.gates.workers.admit, now, fx); v == nil {
		it, v = q.take(&p.ready, q.b.gates.admit, now, fx)
	}
	return it, v
}

// take takes the first event of a queue that is admitted; nil admits all. v is nil if there is none.
func (q *quarantine) take(from *queue, admit func(*item) bool, now time.Time, fx *effects) (item, *version) {
	for range from.n {
		it := from.popFront()
		it.route = routeOf(q.b.owners, it.event)
		v, f := q.b.gates.refuse(it.event, it.route, now)
		if f == nil && admit != nil && !q.b.paused(&it) && !admit(&it) {
			from.pushBack(it)
			continue
		}
		q.leave(from, it.event, fx)
		if f == nil && !q.b.hold(it.route.owner, it.event, v, now, fx) {
			return it, v
		} else if f != nil {
			fx.settle = append(fx.settle, q.b.refused(it.event, v, f))
		}
	}
	return item{}, nil
}

func (q *quarantine) started(r *run) {
	if !r.Event.Watched {
		return
	}
	delete(q.noted, r.Event)
	if r.Event == q.event {
		q.alone++
	}
}

func (q *quarantine) ended(r *run, now time.Time) {
	if !r.back {
		q.done(r.Event, now)
	}
}

// done notes that an event is settled. A watched one no longer counts.
func (q *quarantine) done(e *lifecycle.Delivery, now time.Time) {
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

// step advances the quarantine as far as possible. It must be called after every change of what runs or waits.
func (q *quarantine) step(now time.Time, fx *effects) {
	if q.phase == noting && !now.Before(q.ends) {
		q.release(now) // the settler takes too long; the event is returned when it comes back
	}
	if q.phase == alone && !now.Before(q.ends) {
		q.share(now, fx)
	}
	if q.phase == open && q.waiting.n > 0 && (!now.Before(q.free) || q.b.running == 0 && q.b.queued == q.waiting.n) {
		q.phase, q.since = clearing, now
		q.ends = now.Add(delayFor(q.waiting.front().event.Crashes))
		q.b.lookAgain()
		q.takeCalls(fx)
	}
	if q.phase == clearing && (q.b.running == 0 && q.watched == 0 || q.waiting.n == 0 || !now.Before(q.ends)) {
		q.isolate(now, fx)
	}
	if q.phase == open {
		q.watch(now, fx)
	}
	for _, p := range q.b.pools.dirty {
		for i := range p.ready.n { // no thread is woken for those that need a lease
			if r := routeOf(q.b.owners, p.ready.at(i).event); r != nil && !r.mayStart() {
				r.owner.askLease(r, fx)
			}
		}
	}
}

// takeCalls takes the service calls that wait in the queues of their owners.
func (q *quarantine) takeCalls(fx *effects) {
	for _, o := range q.b.owners {
		before := o.urgent
		for o.queue.n > 0 && o.queue.front().event.Service != nil {
			it := o.dequeue()
			o.pool.calls.pushBack(it)
			q.wait(o, 1)
			o.leaveRoute(it.route, fx)
		}
		if o.urgent > before {
			q.b.changed(o)
			q.b.forget(o)
		}
	}
}

// watch has suspects watched, but only as many as can start at once: one that waits must not count as one that runs.
func (q *quarantine) watch(now time.Time, fx *effects) {
	may := func(it *item) bool { return q.mayWatch(it, fx) }
	for q.watched < q.most && q.b.running+len(q.noted) < q.b.cfg.Threads*q.b.cfg.Slots {
		it, v := q.take(&q.suspects, may, now, fx)
		if v == nil {
			return
		}
		q.watched++
		q.note(it.event, lifecycle.Watch, fx)
	}
}

// mayWatch reports whether the owner and the worker of an event may have one more running, counting those about to
// start.
func (q *quarantine) mayWatch(it *item, fx *effects) bool {
	r := it.route
	o := r.owner
	of, like := o.running, r.running
	for other := range q.noted {
		if other.Owner == o.name {
			of++
			if other.Worker == r.name {
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
	it, v := q.take(&q.waiting, nil, now, fx)
	if v == nil {
		q.release(now)
		return
	}
	q.phase, q.event, q.ends = noting, it.event, now.Add(delayFor(it.event.Crashes))
	q.b.lookAgain()
	order := lifecycle.Watch
	if q.b.running == 0 && q.watched == 0 {
		order = lifecycle.WatchAlone
	}
	q.note(it.event, order, fx)
}

// note has the settler record that e is about to run, as the order says, and submit it again.
func (q *quarantine) note(e *lifecycle.Delivery, order lifecycle.Order, fx *effects) {
	if q.noted == nil {
		q.noted = make(map[*lifecycle.Delivery]struct{})
	}
	q.noted[e] = struct{}{}
	fx.settle = append(fx.settle, lifecycle.Settlement{Event: e, Order: order})
}

// share lets others run beside the event that was alone long enough. If that has not started, it goes back to the
// stream.
func (q *quarantine) share(now time.Time, fx *effects) {
	if _, waits := q.noted[q.event]; waits {
		ready := &q.b.owners[q.event.Owner].pool.ready
		ready.filter(func(it *item) bool { return it.event != q.event })
		q.leave(ready, q.event, fx)
		delete(q.noted, q.event)
		fx.settle = append(fx.settle, returned(q.event))
	} else {
		fx.settle = append(fx.settle, lifecycle.Settlement{Event: q.event, Order: lifecycle.Share})
	}
	q.release(now)
}

// release ends the delay of other events, and reserves time for them.
func (q *quarantine) release(now time.Time) {
	q.phase, q.event, q.ends = open, nil, time.Time{}
	q.b.pools.touchAll()
	q.free = now.Add(workFor * now.Sub(q.since))
	if q.waiting.n > 0 {
		q.b.lookAgain()
	}
}

// startable returns how many events could start now on threads of a pool, by the class of their owners, and how many of
// them wait in the queues of their owners. Watched ones and calls count as light.
func (q *quarantine) startable(p *pool) (all, queued [classes]int) {
	if q.phase == open {
		queued = p.runnable
	}
	all = queued
	all[light] += p.calls.n
	for i := range p.ready.n {
		e := p.ready.at(i).event
		if r := routeOf(q.b.owners, e); r == nil || q.b.gates.admit(&item{event: e, route: r}) {
			all[light]++
		}
	}
	return all, queued
}

// expire settles events whose deadline has passed, and notes the next deadline.
func (q *quarantine) expire(now time.Time, fx *effects) {
	expire := func(part *queue) {
		part.filter(func(it *item) bool {
			if !expired(it.event, now) {
				q.b.noteDeadline(it.event.Deadline)
				return true
			}
			v, f := q.b.gates.refuse(it.event, routeOf(q.b.owners, it.event), now)
			fx.settle = append(fx.settle, q.b.refused(it.event, v, f))
			q.leave(part, it.event, fx)
			return false
		})
	}
	expire(&q.suspects)
	expire(&q.waiting)
	q.b.pools.each(func(p *pool) {
		expire(&p.ready)
		expire(&p.calls)
	})
}

// drain gives back all events of the stream that wait, because the process drains.
func (q *quarantine) drain(now time.Time, fx *effects) {
	back := func(part *queue) {
		for part.n > 0 {
			e := part.popFront().event
			fx.settle = append(fx.settle, returned(e))
			q.leave(part, e, fx)
		}
	}
	back(&q.suspects)
	back(&q.waiting)
	q.b.pools.each(func(p *pool) { back(&p.ready) })
	clear(q.noted)
	if q.phase != open {
		q.release(now)
	}
}
