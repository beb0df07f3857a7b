package dispatch

import (
	"time"

	"github.com/pinwheel-run/pinwheel/events"
)

const (
	// aloneAfter is how many processes must have died while an event ran before it runs alone.
	aloneAfter = 2
	// firstSuspects is how many events around which one process died run at once, to begin with. Each that ends makes it one more.
	firstSuspects = 4
	// aloneFor is how long others are held up, at first, for an event that shall run alone: so long until they have
	// ended, and again so long while it runs. It doubles with each further crash, so that in the end a guilty event crashes alone.
	aloneFor = 2 * time.Second
	// workFor is how much longer than it was held up normal work then goes on, before the next event runs alone.
	workFor = 4
)

// quarantine is where events wait around which processes died, apart from their owners' queues. Guarded by the dispatcher's lock.
//
// An event of one crash is a suspect. Before it runs, its Settlement says Watch: the settler notes that it runs and submits it
// again, and the next thread starts it. So only a crash while it really ran counts as its second. Few suspects run
// at once, so that few innocent ones are beside a guilty one; after two crashes an event runs alone, and
// only a crash then, when it cannot have been anybody else, makes it dead.
type quarantine struct {
	suspects queue                      // not watched yet
	ready    queue                      // watched: to be started next
	watched  int                        // suspects that are being noted, ready or running
	most     int                        // most of these
	noted    map[*events.Event]struct{} // watched or about to be, and not running yet

	waiting queue // shall run alone
	phase   phase
	event   *events.Event // it runs alone, or is about to
	started bool          // a thread has it
	since   time.Time     // when others began to be held up for it
	due     time.Time     // when the phase ends by itself
	free    time.Time     // no event runs alone before
	alone   uint64        // how many did, for the metrics
}

// phase is what becomes of other events' starts because one shall run alone.
type phase uint8

const (
	open     phase = iota // all is as ever
	clearing              // nothing new is started; what runs shall end
	noting                // quarantine.event is with the settler
	alone                 // quarantine.event is ready or runs
)

// idle: there is nothing in it, as nearly always.
func (q *quarantine) idle() bool {
	return q.phase == open && q.suspects.n == 0 && q.ready.n == 0 && q.waiting.n == 0
}

// queued is how many events of Dispatcher.queued it has.
func (q *quarantine) queued() int { return q.suspects.n + q.ready.n + q.waiting.n }

// next is when something of it is due; zero = never.
func (q *quarantine) next() time.Time {
	if q.phase == open && q.waiting.n > 0 {
		return q.free
	}
	return q.due
}

// patience is how long others are held up for an event of so many crashes. No run is longer than the last step.
func patience(crashes int) time.Duration {
	longest := events.MaxLimits.Wall.Duration() + time.Minute
	return min(aloneFor<<min(max(0, crashes-aloneAfter), 20), longest)
}

// suspect takes an event around which a process died.
func (d *Dispatcher) suspect(e *events.Event, now time.Time, t *tell) {
	q := &d.quarantine
	it := item{event: e, since: now}
	switch {
	case e.Watched && q.phase == noting && q.event == e:
		q.phase, q.due = alone, now.Add(patience(e.Crashes))
		d.lookAgain()
		q.ready.pushBack(it)
	case e.Watched && e.Crashes >= aloneAfter: // noted too late: others run again
		delete(q.noted, e)
		t.settle = append(t.settle, returned(e))
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

// step moves the quarantine on as far as it can: it must follow whatever changes what runs or waits.
func (d *Dispatcher) step(now time.Time, t *tell) {
	q := &d.quarantine
	if q.phase == noting && !now.Before(q.due) {
		d.release(now) // the settler takes too long; what comes back from it is returned
	}
	if q.phase == alone && !now.Before(q.due) {
		d.unhold(now, t)
	}
	if q.phase == open && q.waiting.n > 0 && (!now.Before(q.free) || d.running == 0 && d.queued == q.waiting.n) {
		q.phase, q.since = clearing, now
		q.due = now.Add(patience(q.waiting.front().event.Crashes))
		d.lookAgain()
	}
	if q.phase == clearing && (d.running == 0 && q.watched == 0 || q.waiting.n == 0 || !now.Before(q.due)) {
		d.isolate(now, t)
	}
	if q.phase == open {
		d.admit(now, t)
	}
}

// admit has suspects watched, as many as may be and can then start at once: one that waits shall not be taken for one that runs.
func (d *Dispatcher) admit(now time.Time, t *tell) {
	q := &d.quarantine
	for n := q.suspects.n; n > 0 && q.watched < q.most && d.running+len(q.noted) < d.cfg.Threads*d.cfg.Slots; n-- {
		if !d.mayStart(q.suspects.front().event) {
			q.suspects.pushBack(q.suspects.popFront())
		} else if e := d.unqueue(&q.suspects, now, t); e != nil {
			q.watched++
			d.note(e, false, t)
		}
	}
}

// mayStart reports whether the owner of e may have one more running, those that are about to included.
func (d *Dispatcher) mayStart(e *events.Event) bool {
	o := d.owners[e.Owner]
	if o == nil {
		return true // to be refused
	}
	n := o.running
	for other := range d.quarantine.noted {
		if other.Owner == e.Owner {
			n++
		}
	}
	return n < o.maxRunning
}

// isolate has the next event watched that shall run alone.
func (d *Dispatcher) isolate(now time.Time, t *tell) {
	q := &d.quarantine
	for q.waiting.n > 0 {
		e := d.unqueue(&q.waiting, now, t)
		if e == nil {
			continue
		}
		q.phase, q.event, q.due = noting, e, now.Add(patience(e.Crashes))
		d.lookAgain()
		d.note(e, d.running == 0 && q.watched == 0, t)
		return
	}
	d.release(now)
}

// unqueue takes the first event of a queue; nil when it is not to be run after all, and settled.
func (d *Dispatcher) unqueue(from *queue, now time.Time, t *tell) *events.Event {
	e := from.popFront().event
	defer d.unsuspect(from, e, t)
	if v, f := d.refuse(e, d.routeOf(e), now); f != nil {
		t.settle = append(t.settle, d.refused(e, v, f))
		return nil
	}
	return e
}

// unsuspect: e has left that queue of the quarantine. While it was not watched yet it took its owner's room.
func (d *Dispatcher) unsuspect(from *queue, e *events.Event, t *tell) {
	d.queued--
	if from == &d.quarantine.ready {
		return
	}
	o := d.owners[e.Owner]
	o.suspects--
	o.freed++
	d.makeRoom(o, t)
	d.forget(o)
}

// note has the settler note that e is about to run, and submit it again.
func (d *Dispatcher) note(e *events.Event, alone bool, t *tell) {
	if d.quarantine.noted == nil {
		d.quarantine.noted = make(map[*events.Event]struct{})
	}
	d.quarantine.noted[e] = struct{}{}
	t.settle = append(t.settle, events.Settlement{Event: e, Outcome: events.Outcome{Verdict: events.Watch, Alone: alone}})
}

// unhold lets others run beside the event that was alone long enough. If it has not even started it goes back to the stream.
func (d *Dispatcher) unhold(now time.Time, t *tell) {
	q := &d.quarantine
	if q.started {
		t.settle = append(t.settle, events.Settlement{Event: q.event, Outcome: events.Outcome{Verdict: events.Share}})
	} else {
		q.ready.filter(func(it item) bool { return it.event != q.event })
		delete(q.noted, q.event)
		d.queued--
		t.settle = append(t.settle, returned(q.event))
	}
	d.release(now)
}

// release ends the time in which others were held up, and sees that they have time of their own.
func (d *Dispatcher) release(now time.Time) {
	q := &d.quarantine
	q.phase, q.event, q.started, q.due = open, nil, false, time.Time{}
	q.free = now.Add(workFor * now.Sub(q.since))
	if q.waiting.n > 0 {
		d.lookAgain()
	}
}

// unwatch: a watched event has left.
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
func (d *Dispatcher) startWatched(thread int, now time.Time, t *tell) []*events.Attempt {
	q := &d.quarantine
	for n := q.ready.n; n > 0; n-- {
		it := q.ready.popFront()
		d.queued--
		v, f := d.refuse(it.event, d.routeOf(it.event), now)
		if f != nil {
			t.settle = append(t.settle, d.refused(it.event, v, f))
			continue
		}
		o := d.owners[it.event.Owner]
		if o.running >= o.maxRunning {
			q.ready.pushBack(it)
			d.queued++
			continue
		}
		it.route = o.routes[it.event.Worker]
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

// startable is how many events could start now, by the class of their owners. What is watched counts as light.
func (d *Dispatcher) startable() (n [classes]int) {
	q := &d.quarantine
	if q.idle() {
		return d.runnable
	}
	if q.phase == open {
		n = d.runnable
	}
	for i := range q.ready.n {
		e := q.ready.at(i).event
		if o := d.owners[e.Owner]; o == nil || o.running < o.maxRunning {
			n[light]++
		}
	}
	return n
}

// expireQuarantine settles events in it whose deadline is over, and notes the next.
func (d *Dispatcher) expireQuarantine(now time.Time, t *tell) {
	q := &d.quarantine
	if q.queued() == 0 {
		return
	}
	for _, part := range []*queue{&q.suspects, &q.ready, &q.waiting} {
		part.filter(func(it item) bool {
			if expired(it.event, now) {
				v, f := d.refuse(it.event, d.routeOf(it.event), now)
				t.settle = append(t.settle, d.refused(it.event, v, f))
				d.unsuspect(part, it.event, t)
				return false
			}
			d.noteDeadline(it.event.Deadline)
			return true
		})
	}
}

// emptyQuarantine returns what waits in it, because the process drains.
func (d *Dispatcher) emptyQuarantine(t *tell) {
	q := &d.quarantine
	for _, part := range []*queue{&q.suspects, &q.ready, &q.waiting} {
		for part.n > 0 {
			e := part.popFront().event
			t.settle = append(t.settle, returned(e))
			d.unsuspect(part, e, t)
		}
	}
	q.phase, q.event = open, nil
	clear(q.noted)
}
