package dispatch

import (
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// Submit takes events. Direct ones are settled with their callers (direct.go). Each other one comes back in exactly one
// Settlement whose Outcome is Ack, Dead, Retry, Return or Park: at once when it cannot be run. After Retry, the next
// attempt is submitted again. It goes before the owner's other events, because it has waited longest.
func (d *Dispatcher) Submit(batch []*events.Event) {
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
		d.gatherer.completeHasty(fx)
	})
}

func (d *Dispatcher) submit(e *events.Event, now time.Time, fx *effects) {
	if d.draining && !e.Direct() {
		fx.settle = append(fx.settle, returned(e))
		return
	}
	o, r := d.owners[e.Owner], routeOf(d.owners, e)
	if e.Parked && o != nil {
		o.parked = true // perhaps by another process
	}
	v, f := d.gates.refuse(e, r, now)
	if f != nil {
		d.quarantine.left(e, now)
		fx.settle = append(fx.settle, d.refused(e, v, f))
		d.unused(o, e, fx)
		return
	}
	if e.Crashes > 0 {
		d.quarantine.suspect(e, now, fx)
		return
	}
	if e.Attempt > 1 {
		d.gatherer.queue(o, item{event: e, route: r, since: now}, v, true, fx)
		return
	}
	if e.Direct() {
		d.submitDirect(o, item{event: e, route: r, since: now}, v, fx)
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
	d.gatherer.queue(o, item{event: e, route: r, since: now}, v, false, fx)
}

// refused returns the settlement of an event that is not run. Its reply names the version that would have run it.
func (b *backlog) refused(e *events.Event, v *version, f *events.Failure) lifecycle.Settlement {
	is := refusal(requestOf(e), f)
	if e.Kind == events.Fetch && e.ReplyTo != "" && !e.CrashedAlone { // an event that crashed is worth keeping, one that is banned is not
		is.outcome.Verdict = lifecycle.Ack
	}
	s := b.settlement(e, v, is, 0)
	s.Outcome.Version = ""
	return s
}

// settlement makes a Settlement of a verdict that is not a requeue. took is the time since the attempt started.
func (b *backlog) settlement(e *events.Event, v *version, is verdict, took time.Duration) lifecycle.Settlement {
	s := lifecycle.Settlement{Event: e, Outcome: is.outcome}
	if v != nil {
		s.Outcome.Version = v.worker.Version
		if is.outcome.Verdict == lifecycle.Dead || is.outcome.Verdict == lifecycle.Retry { // a retry for which there is no room becomes a letter
			s.Outcome.OnDead = v.worker.OnDead
		}
	}
	if f := is.outcome.Failure; f != nil {
		b.metrics.failed(f.Reason, is.outcome.Verdict)
		if is.reply && e.Waits() {
			s.Reply = events.FailureReply(e, f)
			complete(s.Reply, e, s.Outcome.Version, took)
		}
	}
	return s
}

// complete fills in the fields of a reply that the thread does not know.
func complete(r *events.Reply, e *events.Event, version string, took time.Duration) {
	r.EventID, r.Attempt, r.Version, r.Duration = e.ID, max(1, e.Attempt), version, took
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
	case e.Service != nil && d.quarantine.phase != open:
		d.quarantine.urge(it)
	case e.Service != nil: // it takes no room: its callers are bounded (events.ServiceTree)
		d.push(o, it, true, fx)
	case n >= o.maxQueued:
		f := events.Fail(events.ReasonUnavailable, "%d events of owner %s wait already: try again", n, o.name)
		fx.settle = append(fx.settle, d.refused(e, v, f))
	default:
		d.push(o, it, false, fx)
	}
}

// answerDirect gives settlements of direct events to their callers. It returns the others.
func answerDirect(batch []lifecycle.Settlement) (others []lifecycle.Settlement) {
	n := 0
	for i := range batch {
		s := &batch[i]
		if !s.Event.Direct() {
			if n < i {
				batch[n] = *s
			}
			n++
			continue
		}
		if s.Reply != nil {
			s.Event.Caller.Reply(s.Reply)
		}
		if s.Outcome.Verdict != lifecycle.None {
			s.Event.Caller.End()
		}
	}
	clear(batch[n:])
	return batch[:n]
}
