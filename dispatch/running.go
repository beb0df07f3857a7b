package dispatch

import (
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/guard"
)

// Running says what CPU time an attempt that is not over has taken so far. Its owner is charged at once, so that no event is cheap because it
// is long. yield says that events of others wait for the thread: what runs there is in their way. An attempt of no event, which is what a
// persistent context does between events, is not charged by it: see Charge.
func (d *Dispatcher) Running(thread int, a *events.Attempt, cpu time.Duration) (yield bool) {
	if guard.CPUWhileRunning.Off() {
		return false
	}
	now := time.Now()
	var t tell
	d.mu.Lock()
	defer func() {
		d.mu.Unlock()
		d.out(&t)
	}()
	r, _ := a.Slot.(*run)
	if r == nil {
		return d.othersWait(d.owners[a.Worker.Owner], thread, now)
	}
	if r.ended {
		return false
	}
	if more := cpu - r.cost; more > 0 {
		r.owner.credit -= more
		r.cost = cpu
	}
	if more := cpu - r.spent; more > 0 {
		d.spend(r.owner, more)
		r.spent = cpu
	}
	d.rouse(now, &t)
	return d.othersWait(r.owner, thread, now)
}

// Charge says that an owner took CPU time beside its attempts: its persistent contexts did, between events.
func (d *Dispatcher) Charge(ownerName string, cpu time.Duration) {
	now := time.Now()
	var t tell
	d.mu.Lock()
	if o := d.owners[ownerName]; o != nil {
		o.credit -= cpu
		d.spend(o, cpu)
		d.rouse(now, &t)
	}
	d.mu.Unlock()
	d.out(&t)
}

// Away says that an attempt has left its thread to others and goes on beside it, or that this is over. An owner of whom as many attempts are
// away as there are threads starts nothing until one is back.
func (d *Dispatcher) Away(a *events.Attempt, is bool) {
	r, _ := a.Slot.(*run)
	if r == nil {
		return
	}
	now := time.Now()
	var t tell
	d.mu.Lock()
	if !r.ended && r.away != is {
		d.setAway(r, is)
		d.changed(r.owner)
		d.rouse(now, &t)
	}
	d.mu.Unlock()
	d.out(&t)
}

func (d *Dispatcher) setAway(r *run, is bool) {
	if r.away == is {
		return
	}
	r.away = is
	if is {
		r.owner.away++
	} else {
		r.owner.away--
	}
}

// othersWait reports whether events of other owners wait for the thread, because none that could run them sleeps or was just woken.
func (d *Dispatcher) othersWait(o *owner, thread int, now time.Time) bool {
	if thread < 0 {
		return false
	}
	startable := d.startable()
	for c := range d.of {
		of, n := d.of[c], startable[c]
		if o != nil && o.class == class(c) {
			n -= o.counted
		}
		late := now.Sub(d.nap.wokenAt) > lateAfter
		if of&(1<<thread) != 0 && n > 0 && d.nap.asleep&of == 0 && (d.nap.coming&of == 0 || late) {
			return true
		}
	}
	return false
}
