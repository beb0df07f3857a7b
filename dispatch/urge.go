package dispatch

import "time"

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
