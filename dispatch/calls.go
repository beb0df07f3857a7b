package dispatch

import (
	"time"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// A run can call another worker of its owner: it submits a direct event, and waits for the reply (events.ServiceCall).
// All places of the owner, and all slots of the threads, may belong to runs that wait so. The events that they wait for
// must start all the same. So a run that waits for a call has no place and no slot, and calls go before all other
// events of their owner: what is called gets the place. Then in each chain of calls there is one run that can go on.
//
// A worker with a limit keeps it. A call to it waits like any other event, and fails if the worker is among its
// callers.

// Calling reports that an attempt begins a service call, or that one of its calls is over. The thread that has the
// attempt calls it, before the called event is submitted, and soon calls Next, if only with free = 0. So the thread
// takes the called event itself, and no other thread is woken for it, unless there is more to run.
func (d *Dispatcher) Calling(a *lifecycle.Attempt, is bool) {
	r, _ := a.Slot.(*run)
	if r == nil {
		return
	}
	d.locked(func(now time.Time, _ *effects) {
		if !r.ended {
			before := r.calls
			if is {
				d.idle.comes(threadSet(1)<<r.thread, now)
				r.calls++
			} else {
				r.calls--
			}
			if before == 0 || r.calls == 0 {
				r.lends(d, r.calls > 0)
				d.changed(r.owner)
			}
		}
	})
}

// lends gives the place and the slot of r to others, or takes them back, whether they are free or not.
func (r *run) lends(d *Dispatcher, is bool) {
	if is {
		r.owner.calling++
		d.idle.attempts[r.thread]--
	} else {
		r.owner.calling--
		d.idle.attempts[r.thread]++
	}
}

// urge has a call start although no other event may: a run that must end first waits for it.
func (q *quarantine) urge(d *Dispatcher, it item) {
	q.calls.pushBack(it)
	d.queued++
	d.noteDeadline(it.event.Deadline)
}

// urgeAll urges the calls that wait in the queues of their owners.
func (q *quarantine) urgeAll(d *Dispatcher, fx *effects) {
	for _, o := range d.owners {
		urged := q.calls.n
		for o.queue.n > 0 && o.queue.front().event.Service != nil {
			it := o.dequeue()
			q.calls.pushBack(it)
			o.leaveRoute(it.route, fx)
		}
		if q.calls.n != urged {
			d.changed(o)
			d.forget(o)
		}
	}
}

// startCall starts the first urged call whose worker may start one.
func (q *quarantine) startCall(d *Dispatcher, thread int, now time.Time, fx *effects) []*lifecycle.Attempt {
	for n := q.calls.n; n > 0; n-- {
		it := q.calls.popFront()
		it.route = routeOf(d.owners, it.event)
		v, f := d.gates.refuse(it.event, it.route, now)
		switch {
		case f != nil:
			fx.settle = append(fx.settle, d.refused(it.event, v, f))
		case !it.route.mayStart():
			q.calls.pushBack(it)
			continue
		default:
			d.queued--
			o := d.owners[it.event.Owner]
			r := d.start(o, it, v, thread, now)
			d.changed(o)
			r.one[0] = &r.Attempt
			return r.one[:]
		}
		d.queued--
	}
	return nil
}
