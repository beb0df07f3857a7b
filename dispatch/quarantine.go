package dispatch

import (
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
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

// quarantine holds events during whose runs processes died, apart from their owners' queues. Guarded by the
// dispatcher's lock.
//
// An event with one crash is a suspect. Before it runs, its Settlement says Watch: the settler records that it runs and
// submits it again, and the next thread starts it. So only a crash while it really ran counts as its second. Few
// suspects run at once, so that few innocent ones are beside a guilty one. After two crashes an event runs alone, and
// only a crash then, which no other event can have caused, makes it dead.
type quarantine struct {
	suspects queue                      // not watched yet
	ready    queue                      // watched: to be started next
	watched  int                        // suspects that are being recorded, ready or running
	most     int                        // limit of watched
	noted    map[*events.Event]struct{} // watched or about to be, and not yet running

	calls queue // service calls that start in any phase

	waiting queue // must run alone
	phase   phase
	event   *events.Event // it runs alone, or is about to
	started bool          // a thread has it
	since   time.Time     // when the delay of others began
	due     time.Time     // when the phase ends by itself
	free    time.Time     // no event runs alone before this time
	alone   uint64        // how many ran alone, for the metrics
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

// queued returns how many events of Dispatcher.queued wait here.
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
	longest := events.MaxLimits.Wall.Duration() + time.Minute
	return min(aloneFor<<min(max(0, crashes-aloneAfter), 20), longest)
}

// suspect takes an event during whose run a process died.
func (d *Dispatcher) suspect(e *events.Event, now time.Time, fx *effects) {
	q := &d.quarantine
	it := item{event: e, since: now}
	switch {
	case e.Watched && q.phase == noting && q.event == e:
		q.phase, q.due = alone, now.Add(patience(e.Crashes))
		d.lookAgain()
		q.ready.pushBack(it)
	case e.Watched && e.Crashes >= aloneAfter: // recorded too late: others run again
		delete(q.noted, e)
		fx.settle = append(fx.settle, returned(e))
		return
	case e.Watched:
		q.ready.pushBack(it)
	case e.Crashes >= aloneAfter:
		q.waiting.pushBack(it)
		d.owners[e.Owner].suspects++
	default:
		q.suspects.pushBack(it)
		d.owners[e.Owner].suspects++
	}
	d.queued++
	d.noteDeadline(e.Deadline)
}

// step advances the quarantine as far as possible. It must be called after every change of what runs or waits.
func (d *Dispatcher) step(now time.Time, fx *effects) {
	q := &d.quarantine
	if q.phase == noting && !now.Before(q.due) {
		d.release(now) // the settler takes too long; the event is returned when it comes back
	}
	if q.phase == alone && !now.Before(q.due) {
		d.unhold(now, fx)
	}
	if q.phase == open && q.waiting.n > 0 && (!now.Before(q.free) || d.running == 0 && d.queued == q.waiting.n) {
		q.phase, q.since = clearing, now
		q.due = now.Add(patience(q.waiting.front().event.Crashes))
		d.lookAgain()
		q.urgeAll(d, fx)
	}
	if q.phase == clearing && (d.running == 0 && q.watched == 0 || q.waiting.n == 0 || !now.Before(q.due)) {
		d.isolate(now, fx)
	}
	if q.phase == open {
		d.admit(now, fx)
	}
	for i := range q.ready.n { // no thread is woken for those that need a lease
		e := q.ready.at(i).event
		if o, r := d.owners[e.Owner], routeOf(d.owners, e); r != nil && !r.mayStart() {
			o.askLease(r, fx)
		}
	}
}

// admit has suspects watched, but only as many as can start at once: one that waits must not count as one that runs.
func (d *Dispatcher) admit(now time.Time, fx *effects) {
	q := &d.quarantine
	for n := q.suspects.n; n > 0 && q.watched < q.most && d.running+len(q.noted) < d.cfg.Threads*d.cfg.Slots; n-- {
		if !d.mayStart(q.suspects.front().event, fx) {
			q.suspects.pushBack(q.suspects.popFront())
		} else if e := d.unqueue(&q.suspects, now, fx); e != nil {
			q.watched++
			d.note(e, false, fx)
		}
	}
}

// mayStart reports whether the owner and the worker of e may have one more running, counting those about to start.
func (d *Dispatcher) mayStart(e *events.Event, fx *effects) bool {
	o, r := d.owners[e.Owner], routeOf(d.owners, e)
	if o == nil || r == nil {
		return true // refused later
	}
	of, like := o.running, r.running
	for other := range d.quarantine.noted {
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
func (d *Dispatcher) isolate(now time.Time, fx *effects) {
	q := &d.quarantine
	for q.waiting.n > 0 {
		e := d.unqueue(&q.waiting, now, fx)
		if e == nil {
			continue
		}
		q.phase, q.event, q.due = noting, e, now.Add(patience(e.Crashes))
		d.lookAgain()
		d.note(e, d.running == 0 && q.watched == 0, fx)
		return
	}
	d.release(now)
}

// unqueue takes the first event of a queue. It returns nil when the event is refused and settled.
func (d *Dispatcher) unqueue(from *queue, now time.Time, fx *effects) *events.Event {
	e := from.popFront().event
	defer d.unsuspect(from, e, fx)
	if v, f := d.gates.refuse(e, routeOf(d.owners, e), now); f != nil {
		fx.settle = append(fx.settle, d.refused(e, v, f))
		return nil
	}
	return e
}

// unsuspect updates the counts after e left that queue of the quarantine. Until it is watched, an event takes room of
// its owner.
func (d *Dispatcher) unsuspect(from *queue, e *events.Event, fx *effects) {
	d.queued--
	if from == &d.quarantine.ready || from == &d.quarantine.calls {
		return
	}
	o := d.owners[e.Owner]
	o.suspects--
	o.freed++
	d.makeRoom(o, fx)
	d.forget(o)
}

// note has the settler record that e is about to run, and submit it again.
func (d *Dispatcher) note(e *events.Event, alone bool, fx *effects) {
	if d.quarantine.noted == nil {
		d.quarantine.noted = make(map[*events.Event]struct{})
	}
	d.quarantine.noted[e] = struct{}{}
	fx.settle = append(fx.settle, lifecycle.Settlement{Event: e, Outcome: lifecycle.Outcome{Verdict: lifecycle.Watch, Alone: alone}})
}

// unhold lets others run beside the event that was alone long enough. If that has not started, it goes back to the
// stream.
func (d *Dispatcher) unhold(now time.Time, fx *effects) {
	q := &d.quarantine
	if q.started {
		fx.settle = append(fx.settle, lifecycle.Settlement{Event: q.event, Outcome: lifecycle.Outcome{Verdict: lifecycle.Share}})
	} else {
		q.ready.filter(func(it *item) bool { return it.event != q.event })
		delete(q.noted, q.event)
		d.queued--
		fx.settle = append(fx.settle, returned(q.event))
	}
	d.release(now)
}

// release ends the delay of other events, and reserves time for them.
func (d *Dispatcher) release(now time.Time) {
	q := &d.quarantine
	q.phase, q.event, q.started, q.due = open, nil, false, time.Time{}
	q.free = now.Add(workFor * now.Sub(q.since))
	if q.waiting.n > 0 {
		d.lookAgain()
	}
}

// unwatch updates the quarantine after a watched event has left.
func (d *Dispatcher) unwatch(e *events.Event, now time.Time) {
	q := &d.quarantine
	delete(q.noted, e)
	switch {
	case e == q.event:
		d.release(now)
	case e.Crashes < aloneAfter:
		if q.watched--; q.watched == 0 && q.suspects.n == 0 {
			q.most = firstSuspects
		} else {
			q.most++
		}
	}
}

// startWatched starts the first watched event whose owner may have one more running.
func (d *Dispatcher) startWatched(thread int, now time.Time, fx *effects) []*lifecycle.Attempt {
	q := &d.quarantine
	for n := q.ready.n; n > 0; n-- {
		it := q.ready.popFront()
		d.queued--
		v, f := d.gates.refuse(it.event, routeOf(d.owners, it.event), now)
		if f != nil {
			fx.settle = append(fx.settle, d.refused(it.event, v, f))
			continue
		}
		o := d.owners[it.event.Owner]
		it.route = o.routes[it.event.Worker]
		if !d.gates.admit(&it) {
			q.ready.pushBack(it)
			d.queued++
			continue
		}
		if it.event == q.event {
			q.started = true
			q.alone++
		}
		delete(q.noted, it.event)
		r := d.start(o, it, v, thread, now)
		d.changed(o)
		r.one[0] = &r.Attempt
		return r.one[:]
	}
	return nil
}

// requeueWatched takes back a watched event that the thread could not start.
func (d *Dispatcher) requeueWatched(r *run) {
	q := &d.quarantine
	if r.Event == q.event {
		q.started = false
	}
	q.noted[r.Event] = struct{}{}
	q.ready.pushFront(item{event: r.Event, since: r.since})
	d.queued++
}

// startable returns how many events could start now, by the class of their owners. Watched ones count as light.
func (d *Dispatcher) startable() (n [classes]int) {
	q := &d.quarantine
	if q.idle() {
		return d.runnable
	}
	if q.phase == open {
		n = d.runnable
	}
	n[light] += q.calls.n
	for i := range q.ready.n {
		e := q.ready.at(i).event
		o, r := d.owners[e.Owner], routeOf(d.owners, e)
		if o == nil || r == nil || d.gates.admit(&item{event: e, route: r}) {
			n[light]++
		}
	}
	return n
}

// expireQuarantine settles events in it whose deadline has passed, and notes the next deadline.
func (d *Dispatcher) expireQuarantine(now time.Time, fx *effects) {
	q := &d.quarantine
	if q.queued() == 0 {
		return
	}
	for _, part := range []*queue{&q.suspects, &q.ready, &q.waiting, &q.calls} {
		part.filter(func(it *item) bool {
			if expired(it.event, now) {
				v, f := d.gates.refuse(it.event, routeOf(d.owners, it.event), now)
				fx.settle = append(fx.settle, d.refused(it.event, v, f))
				d.unsuspect(part, it.event, fx)
				return false
			}
			d.noteDeadline(it.event.Deadline)
			return true
		})
	}
}

// emptyQuarantine returns all waiting events, because the process drains.
func (d *Dispatcher) emptyQuarantine(fx *effects) {
	q := &d.quarantine
	for _, part := range []*queue{&q.suspects, &q.ready, &q.waiting} {
		for part.n > 0 {
			e := part.popFront().event
			fx.settle = append(fx.settle, returned(e))
			d.unsuspect(part, e, fx)
		}
	}
	q.phase, q.event = open, nil
	clear(q.noted)
}
