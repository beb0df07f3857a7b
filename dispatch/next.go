package dispatch

import (
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// Next returns up to free events for the calling thread to start now, in this order. It returns several only if
// all together are expected to be short, and puts events of the same worker next to each other.
// Attempt.Start is the same for all of one call.
//
// The thread calls Next again when it has finished this batch and has a free slot. After an empty result it counts as
// asleep, and gets nothing until Threads.Wake(thread). With free = 0 it reports that it is busy and takes nothing. A
// thread that was woken, or has called Calling, does that when it has no free slot: an event might wait for it that
// another thread could take.
//
// The thread has a number of ThreadOf, whose index is below Config.Threads+Config.Background. It gets events of the
// owners of its pool only. A thread of another pool than 0 calls Next when it was woken since its pool began or ended.
//
// The thread gives back what it cannot start by a Report of an End that is Interrupted and not Started.
func (d *Dispatcher) Next(thread, free int) []*lifecycle.Attempt {
	var batch []*lifecycle.Attempt
	number, thread := PoolOfThread(thread)
	d.locked(func(now time.Time, fx *effects) {
		p, rest := d.pools.pool(number), &d.pools.rest
		d.pools.touch(p)
		p.idle.up(thread, rest, now)
		free = min(free, d.cfg.Slots-p.idle.threads[thread].attempts)
		if free <= 0 {
			p.idle.busy(thread, now) // it has work of its own
			return
		}
		batch = d.fill(p, thread, free, now, fx)
		if len(batch) == 0 {
			p.idle.sleep(thread, rest, now)
		}
		p.idle.took(thread, batch, now)
	})
	d.observed.started(batch)
	return batch
}

// fill takes events of one owner after another until the batch is long enough.
func (d *Dispatcher) fill(p *pool, thread, free int, now time.Time, fx *effects) (batch []*lifecycle.Attempt) {
	if c := &d.gates.crashes; !c.idle() {
		if it, v := c.next(p, now, fx); v != nil {
			r := d.start(it.route.owner, it, v, thread, now)
			d.changed(r.owner)
			r.one[0] = &r.Attempt
			return r.one[:]
		}
		if c.phase != open {
			return nil
		}
	}
	budget := turn
	for budget > 0 && len(batch) < free {
		o := d.pick(p, thread, now)
		if o == nil {
			break
		}
		before := len(batch)
		batch = d.take(o, thread, free, &budget, now, fx, batch)
		if d.recount(o); o.list == nil { // a batch that another version runs now was queued again, and its limit has no room
			d.changed(o)
		}
		d.makeRoom(o, fx)
		if len(batch) == before && o.counted > 0 {
			break // its first event does not fit into this batch: it stays first
		}
		if o.list != nil {
			p.queues[o.class].served(o, o.counted > 0)
		}
		if o.queue.n > 0 && o.counted == 0 {
			d.metrics.throttled++
		}
		d.forget(o)
	}
	return group(batch)
}

// take starts events of o while it has credit and they fit.
func (d *Dispatcher) take(o *owner, thread, free int, budget *time.Duration, now time.Time, fx *effects,
	batch []*lifecycle.Attempt,
) []*lifecycle.Attempt {

	for o.queue.n > 0 && o.credit > 0 && *budget > 0 && len(batch) < free && d.gates.owners.places(o) > 0 {
		it := o.queue.front()
		var v *version
		var f *events.Failure
		if it.batch == nil {
			v, f = d.gates.refuse(it.event, it.route, now)
		} else if v = d.gatherer.refuseBatch(o, now, fx); v == nil {
			continue
		}
		if f != nil {
			fx.settle = append(fx.settle, d.refused(it.event, v, f))
			r := o.dequeue().route
			o.overflow.left(1)
			d.queued--
			o.leaveRoute(r, fx)
			continue
		}
		if o.holdBack() {
			continue
		}
		cost := v.cost(1 << thread)
		if len(batch) > 0 && (!cost.known || cost.cpu > *budget) {
			break
		}
		next := o.dequeue()
		r := d.start(o, next, v, thread, now)
		o.overflow.left(1)
		d.queued -= next.n()
		*budget -= r.cost
		if !cost.known {
			*budget = 0
		}
		if batch == nil {
			r.one[0] = &r.Attempt
			batch = r.one[:]
		} else {
			batch = append(batch, &r.Attempt)
		}
	}
	return batch
}

// start makes an attempt of an event of o that has left its queue.
func (d *Dispatcher) start(o *owner, it item, v *version, thread int, now time.Time) *run {
	r := &run{
		Attempt: lifecycle.Attempt{
			Event: it.event, Worker: v.worker, Number: max(1, it.event.Attempt), Start: now,
			Own: it.event.Interrupted >= ownAfter,
		},
		owner: o, route: it.route, version: v, since: it.since, cost: v.cost(1 << thread).cpu,
		pool: o.pool, thread: uint8(thread),
	}
	if v.batches(it.event) {
		r.Batch = it.events()
		for _, e := range r.Batch {
			r.Own = r.Own || e.Interrupted >= ownAfter
		}
	}
	r.began(now.UnixNano())
	r.Slot = r
	d.placer.started(r, now)
	o.account.charge(r.cost)
	d.gates.started(r)
	d.running++
	d.metrics.wait.observe(now.Sub(it.since))
	return r
}

// group puts attempts of the same worker next to each other, and keeps their order otherwise.
func group(batch []*lifecycle.Attempt) []*lifecycle.Attempt {
	for i := 1; i < len(batch); i++ {
		w := batch[i-1].Worker
		if batch[i].Worker == w {
			continue
		}
		for j := i + 1; j < len(batch); j++ {
			if batch[j].Worker == w {
				moved := batch[j]
				copy(batch[i+1:j+1], batch[i:j])
				batch[i] = moved
				break
			}
		}
	}
	return batch
}
