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
