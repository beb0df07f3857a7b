package dispatch

import (
	"time"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/lib/guard"
)

// Report takes reports of the calling thread about its attempts, or about those that another thread handed to it.
// Replies are completed (EventID, Attempt, Version, Duration) and passed on at once. Events that were not started go to
// the front of their owner's queue. When the dispatcher drains, they go back to the stream, unless they are direct. The
// thread may use the slice again afterwards.
func (d *Dispatcher) Report(thread int, all []lifecycle.Report) {
	if len(all) == 0 {
		return
	}
	for i := range all {
		if r := &all[i]; r.Reply != nil && r.End == nil {
			r.Attempt.Status = uint16(r.Reply.Status) // first: observers see it in the report of the end
		}
	}
	d.observed.reported(all)
	d.locked(func(now time.Time, fx *effects) {
		fx.settle = make([]lifecycle.Settlement, 0, len(all))
		d.reports.takeBack(d.reports.take(thread, all, now, fx), now, fx)
	})
}

// Running reports the CPU time that an unfinished attempt has taken so far. Its owner is charged at once, so that a
// long event is not cheaper than short ones. yield says that events of other owners wait for the thread. An attempt
// without an event is what a persistent context does between events. It is not charged here but by Charge.
func (d *Dispatcher) Running(thread int, a *lifecycle.Attempt, cpu time.Duration) (yield bool) {
	if guard.CPUWhileRunning.Off() {
		return false
	}
	r, _ := a.Slot.(*run)
	number, index := PoolOfThread(thread)
	d.locked(func(now time.Time, fx *effects) {
		p := d.pools.pool(number)
		if index >= 0 {
			p.idle.busy(index, now)
			d.pools.touch(p)
		}
		var o *owner
		switch {
		case r == nil:
			o = d.owners[a.Worker.Owner]
		case r.ended:
			return
		default:
			o = r.owner
			d.charge(r, cpu)
		}
		d.wakeThreads(now, fx) // a thread that is woken now takes what waits
		if index >= 0 {
			startable, _ := d.gates.crashes.startable(p)
			yield = d.othersWait(o, p, index, startable, now)
		}
	})
	return yield
}

// Charge reports CPU time that an owner took beside its attempts: its persistent contexts took it between events.
func (d *Dispatcher) Charge(ownerName string, cpu time.Duration) {
	d.locked(func(time.Time, *effects) {
		if o := d.owners[ownerName]; o != nil {
			o.account.charge(cpu)
			d.spend(o, cpu)
		}
	})
}

// Away reports that an attempt left its thread to others and continues beside it, or that this is over. An owner with
// as many attempts away as there are threads starts nothing until one is back.
func (d *Dispatcher) Away(a *lifecycle.Attempt, is bool) {
	r, _ := a.Slot.(*run)
	if r == nil {
		return
	}
	d.locked(func(time.Time, *effects) {
		if !r.ended && r.away != is {
			d.setAway(r, is)
			d.changed(r.owner)
		}
	})
}

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
				r.pool.idle.comes(threadSet(1)<<r.thread, now)
				r.calls++
			} else {
				r.calls--
			}
			if before == 0 || r.calls == 0 {
				d.placer.setCalling(r, r.calls > 0)
				d.changed(r.owner)
			}
		}
	})
}
