package dispatch

import (
	"time"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/guard"
)

// Running reports the CPU time that an unfinished attempt has taken so far. Its owner is charged at once, so that a
// long event is not cheaper than short ones. yield says that events of other owners wait for the thread. An attempt
// without an event is what a persistent context does between events. It is not charged here but by Charge.
func (d *Dispatcher) Running(thread int, a *lifecycle.Attempt, cpu time.Duration) (yield bool) {
	if guard.CPUWhileRunning.Off() {
		return false
	}
	r, _ := a.Slot.(*run)
	d.locked(func(now time.Time, fx *effects) {
		if thread >= 0 {
			d.idle.busy(thread, now)
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
		yield = d.othersWait(o, thread, now)
	})
	return yield
}

// charge takes the CPU time that a run has taken so far from its owner's credit. d.mu must be held.
func (b *backlog) charge(r *run, cpu time.Duration) {
	if more := cpu - r.cost; more > 0 {
		r.owner.credit -= more
		r.cost = cpu
	}
	if more := cpu - r.spent; more > 0 {
		b.spend(r.owner, more)
		r.spent = cpu
	}
}

// Charge reports CPU time that an owner took beside its attempts: its persistent contexts took it between events.
func (d *Dispatcher) Charge(ownerName string, cpu time.Duration) {
	d.locked(func(time.Time, *effects) {
		if o := d.owners[ownerName]; o != nil {
			o.credit -= cpu
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

func (b *backlog) setAway(r *run, is bool) {
	if r.away == is {
		return
	}
	r.away = is
	if is {
		r.owner.away++
		r.version.warm &^= 1 << r.thread // its context went with it
	} else {
		r.owner.away--
	}
}

// othersWait reports whether events of other owners wait for the thread, because no thread that could run them sleeps
// or was just woken.
func (d *Dispatcher) othersWait(o *owner, thread int, now time.Time) bool {
	if thread < 0 {
		return false
	}
	startable := d.quarantine.startable()
	for c := range d.of {
		of, n := d.of[c], startable[c]
		if o != nil && o.class == class(c) {
			n -= o.counted
		}
		late := now.Sub(d.idle.wokenAt) > lateAfter
		if of&(1<<thread) != 0 && n > 0 && d.idle.asleep&of == 0 && (d.idle.waking&of == 0 || late) {
			return true
		}
	}
	return false
}
