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
