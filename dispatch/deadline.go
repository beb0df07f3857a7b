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
		soonest, ripe, due, spare, left := d.soonest, d.gatherer.due, d.gates.crashes.due(), d.spares.due, d.leftUntil()
		d.mu.Unlock()
		wait := time.Hour
		notAfter := func(at time.Time, step time.Duration) {
			if !at.IsZero() {
				wait = min(wait, max(time.Until(at), step))
			}
		}
		notAfter(soonest, expiryStep)
		notAfter(ripe, expiryStep)
		notAfter(spare, expiryStep)
		notAfter(due, time.Millisecond)
		notAfter(left, time.Millisecond)
		timer.Reset(wait)
	}
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
	d.gates.crashes.expire(now, fx)
}
