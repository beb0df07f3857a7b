package dispatch

import (
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

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
