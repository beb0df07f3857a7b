package dispatch

import (
	"context"
	"time"
)

// Run fails queued events whose deadline passes before they start, within about 50 ms of the deadline. It completes
// batches that have waited long enough, with the same precision, and advances the quarantine. It wakes other threads
// for events that were left to a thread which does not take them, and has threads close contexts that were not needed
// for a while. It returns when ctx is done.
func (d *Dispatcher) Run(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.deadlines:
		case <-timer.C:
			d.locked(func(now time.Time, fx *effects) {
				d.expire(now, fx)
				d.gatherer.ripen(now, fx)
				d.tick(now, fx)
			})
		}
		d.mu.Lock()
		soonest, ripe, due, extra, left := d.soonest, d.gatherer.due, d.quarantine.next(), d.extras.due, d.idle.look
		d.mu.Unlock()
		wait := time.Hour
		notAfter := func(at time.Time, step time.Duration) {
			if !at.IsZero() {
				wait = min(wait, max(time.Until(at), step))
			}
		}
		notAfter(soonest, expiryStep)
		notAfter(ripe, expiryStep)
		notAfter(extra, expiryStep)
		notAfter(due, time.Millisecond)
		notAfter(left, time.Millisecond)
		timer.Reset(wait)
	}
}

// noteOwnerDeadline notes the deadline of an event that o queues.
func (b *backlog) noteOwnerDeadline(o *owner, deadline time.Time) {
	if deadline.IsZero() {
		return
	}
	if o.soonest.IsZero() || deadline.Before(o.soonest) {
		o.soonest = deadline
	}
	b.noteDeadline(deadline)
}

// noteDeadline makes sure that Run checks in time.
func (b *backlog) noteDeadline(deadline time.Time) {
	if !deadline.IsZero() && (b.soonest.IsZero() || deadline.Before(b.soonest)) {
		b.soonest = deadline
		b.lookAgain()
	}
}

// lookAgain has Run compute again when to check next.
func (b *backlog) lookAgain() {
	select {
	case b.deadlines <- struct{}{}:
	default:
	}
}

// tick advances the quarantine when it is due, wakes threads for events that were left to others in vain, and closes
// contexts that are not needed.
func (d *Dispatcher) tick(now time.Time, fx *effects) {
	if !now.Before(d.idle.look) {
		d.idle.look = time.Time{}
	}
	fx.close = d.extras.look(d.owners, now)
}

// expire settles the queued events whose deadline is not after now. It checks only the queues of owners that may
// have one, and at most every expiryStep.
func (d *Dispatcher) expire(now time.Time, fx *effects) {
	if d.soonest.IsZero() || now.Before(d.soonest) {
		return
	}
	d.soonest = time.Time{}
	for _, o := range d.owners {
		if !o.soonest.IsZero() && !now.Before(o.soonest) {
			d.expireOwner(o, now, fx)
		}
		if !o.soonest.IsZero() && (d.soonest.IsZero() || o.soonest.Before(d.soonest)) {
			d.soonest = o.soonest
		}
	}
	d.quarantine.expireQuarantine(now, fx)
}

func (d *Dispatcher) expireOwner(o *owner, now time.Time, fx *effects) {
	o.soonest = time.Time{}
	d.sift(o, func(it item) bool {
		e := it.event
		if expired(e, now) {
			v, f := d.gates.refuse(e, it.route, now)
			fx.settle = append(fx.settle, d.refused(e, v, f))
			return false
		}
		if !e.Deadline.IsZero() && (o.soonest.IsZero() || e.Deadline.Before(o.soonest)) {
			o.soonest = e.Deadline
		}
		return true
	}, fx)
}

// sift keeps the waiting events of o for which keep is true.
func (b *backlog) sift(o *owner, keep func(item) bool, fx *effects) {
	before := o.held()
	var left []*route
	some := func(it *item) bool {
		gone, stays := it.sift(keep)
		if o.extra -= gone; !stays {
			o.extra++ // the item itself is not among them
		}
		return stays
	}
	o.queue.filter(func(it *item) bool {
		if some(it) {
			return true
		}
		it.route.queued--
		left = append(left, it.route)
		return false
	})
	o.waitingRoutes(func(r *route) {
		waiting := r.waiting.n
		r.waiting.filter(some)
		o.waiting -= waiting - r.waiting.n
	})
	for _, g := range o.gathers {
		g.sift(keep)
	}
	o.freed += before - o.held()
	b.queued -= before - o.held()
	for _, r := range left {
		o.leaveRoute(r, fx)
	}
	b.changed(o)
	b.makeRoom(o, fx)
	b.forget(o)
}
