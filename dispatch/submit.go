package dispatch

import (
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// Submit takes events. Direct ones are settled with their callers. Each other one comes back in exactly one
// Settlement whose Outcome is Ack, Dead or Retry, or whose Order is Return, Park or a hold: at once when it cannot be
// run. After Retry, the next attempt is submitted again. It goes before the owner's other events, because it has waited
// longest.
func (d *Dispatcher) Submit(batch []*lifecycle.Delivery) {
	if len(batch) == 0 {
		return
	}
	d.observed.queued(batch)
	d.locked(func(now time.Time, fx *effects) {
		for _, e := range batch {
			if e.Attempt <= 1 || e.Crashes > 0 {
				d.submit(e, now, fx)
			}
		}
		for i := len(batch) - 1; i >= 0; i-- { // they are pushed to the front, so the last one goes first
			if e := batch[i]; e.Attempt > 1 && e.Crashes == 0 {
				d.submit(e, now, fx)
			}
		}
		d.gatherer.completeImmediate(fx)
	})
}

func (d *Dispatcher) submit(e *lifecycle.Delivery, now time.Time, fx *effects) {
	if d.draining && !e.Direct() {
		fx.settle = append(fx.settle, returned(e))
		return
	}
	o, r := d.owners[e.Owner], routeOf(d.owners, e)
	if e.Parked && o != nil {
		o.overflow.comesBack()
	}
	v, f := d.gates.refuse(e, r, now)
	if f != nil {
		fx.settle = append(fx.settle, d.refused(e, v, f))
		d.unused(o, e, fx)
		return
	}
	if d.hold(o, e, v, now, fx) {
		return
	}
	it := item{event: e, route: r, since: now}
	if e.Direct() {
		d.submitDirect(o, it, v, fx)
		return
	}
	if d.gates.crashes.takes(it, now, fx) {
		return
	}
	if e.Attempt > 1 {
		d.gatherer.queue(o, it, v, true, fx)
		return
	}
	most := o.maxQueued
	if e.Parked {
		most += parkedSlack
	}
	if o.held() >= most || o.parking && !e.Parked {
		d.park(o, e, fx)
		return
	}
	d.gatherer.queue(o, it, v, false, fx)
}

// Direct events wait in the same queues as others of their owner and run within the same limits. They have no stream.
// So they are never parked, returned, retried or made a dead letter: their caller gets a failure in place of that.

// submitDirect queues a direct event, or refuses it if its owner's queue is full. Parked events of its owner do not
// delay it.
func (d *Dispatcher) submitDirect(o *owner, it item, v *version, fx *effects) {
	switch e, n := it.event, o.held(); {
	case e.Service != nil && it.route.limit > 0 && e.Service.From(e.Worker):
		f := events.Fail(events.ReasonUnavailable, "worker %s has a limit of %d events at once, and would wait for itself", e.Target(), it.route.limit)
		fx.settle = append(fx.settle, d.refused(e, v, f))
	case d.gates.crashes.takes(it, it.since, fx):
	case e.Service != nil: // it takes no room: its callers are bounded (events.ServiceTree)
		d.push(o, it, true, fx)
	case n >= o.maxQueued:
		f := events.Fail(events.ReasonUnavailable, "%d events of owner %s wait already: try again", n, o.name)
		fx.settle = append(fx.settle, d.refused(e, v, f))
	default:
		d.push(o, it, false, fx)
	}
}

// Cancel ends events that were submitted and not settled: those that wait, also in the quarantine, are settled as
// cancelled, and returned. With running, threads end the runs of the others.
func (d *Dispatcher) Cancel(list []*lifecycle.Delivery, running bool) (waited []*lifecycle.Delivery) {
	if len(list) == 0 {
		return nil
	}
	of := make(map[*owner]map[*lifecycle.Delivery]bool)
	crashed := make(map[*lifecycle.Delivery]bool) // they are in the quarantine, or will be
	d.locked(func(now time.Time, fx *effects) {
		for _, e := range list {
			o := d.owners[e.Owner]
			switch {
			case e.Began() != 0:
				if running {
					fx.cancel = append(fx.cancel, e)
				}
			case o != nil && of[o] == nil:
				of[o] = map[*lifecycle.Delivery]bool{e: true}
			case o != nil:
				of[o][e] = true
			}
			if e.Began() == 0 && e.Crashes > 0 {
				crashed[e] = true
			}
		}
		waited = d.gates.crashes.cancel(crashed, now, fx)
		for o, these := range of {
			d.filter(o, func(it item) bool {
				if !these[it.event] {
					return true
				}
				fx.settle = append(fx.settle, d.cancelled(it.event, it.route))
				waited = append(waited, it.event)
				return false
			}, fx)
		}
	})
	return waited
}

// cancel settles those of these events that wait here as cancelled, and returns them.
func (q *quarantine) cancel(these map[*lifecycle.Delivery]bool, now time.Time,
	fx *effects) (waited []*lifecycle.Delivery) {
	if len(these) == 0 {
		return nil
	}
	cancel := func(part *queue) {
		part.filter(func(it *item) bool {
			if !these[it.event] {
				return true
			}
			fx.settle = append(fx.settle, q.b.cancelled(it.event, routeOf(q.b.owners, it.event)))
			waited = append(waited, it.event)
			q.done(it.event, now)
			q.leave(part, it.event, fx)
			return false
		})
	}
	cancel(&q.suspects)
	cancel(&q.waiting)
	q.b.pools.each(func(p *pool) { cancel(&p.ready) })
	return waited
}

// cancelled is the settlement of an event that waited and that somebody cancelled.
func (b *backlog) cancelled(e *lifecycle.Delivery, r *route) lifecycle.Settlement {
	v, _ := r.resolve(e)
	return b.refused(e, v, events.Cancelled())
}
