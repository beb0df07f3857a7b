package consumer

import (
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/consumer/attempts"
	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/consumer/jsapi"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// pulled is what the puller received at once. Each entry is in all, and in exactly one of fresh, later, again,
// malformed and pubAcks.
type pulled struct {
	now       time.Time
	late      bool // pulling has stopped: all events are given back
	all       []*entry
	places    int                   // of the window that all of them take
	fresh     []*lifecycle.Delivery // delivered for the first time
	later     []*entry              // delayed by their publishers
	again     []*entry              // delivered before, or replayed: something must be looked up
	malformed []malformed
	pubAcks   []*entry // these are no events
	last      []*entry // parked events after which the stream had no more events of their owner
}

type malformed struct {
	entry   *entry
	failure *events.Failure
}

// add decodes one delivery.
func (d *pulled) add(c *Consumer, from *source, m *nats.Msg, o events.Origin, stored time.Time) {
	h := &entry{from: from, stored: stored, ack: o.AckSubject, epoch: from.epoch.Load(), renewed: d.now,
		absences: c.leases.absences.Load()}
	o.HeaderBytes = jsapi.HeaderBytes(m)
	e := &h.event
	failure := c.decode(e, o, m, stored)
	e.Holder, e.Parked = h, from.stream == events.StreamParked
	if e.Credit > 0 {
		e.Requester = &events.Requester{Credit: e.Credit}
	}
	if from.stream == events.StreamSchedules || e.Parked {
		if h.record = attempts.Carried(m.Header.Get(events.ParkedRecord)); h.record != nil {
			e.CrashedAlone, e.Asked, e.Spared = h.record.CrashedAlone, h.record.Asked(), h.record.Spared
		}
	}
	h.idempotent = failure == nil && c.isIdempotent(e)
	if !e.Deadline.IsZero() {
		e.Deadline = c.clock.Own(e.Deadline)
	}
	c.parts.Attach(e)
	h.places = placesOf(m.Size())
	d.places += h.places
	d.all = append(d.all, h)
	switch {
	case jsapi.IsPubAck(m):
		h.begin(storing, from.owner)
		d.pubAcks = append(d.pubAcks, h)
	case failure != nil:
		h.begin(replying, from.owner)
		d.malformed = append(d.malformed, malformed{h, failure})
	case !e.DeliverAt.IsZero(): // even if it was delivered before: it runs from the stream of schedules
		h.begin(storing, "")
		d.later = append(d.later, h)
	case o.Deliveries > 1 || deadletter.IsReplay(&e.Event) || h.idempotent || e.Overlaps() == events.OverlapReplace:
		h.begin(checking, from.owner)
		d.again = append(d.again, h)
	default:
		h.begin(running, "")
		d.fresh = append(d.fresh, e)
	}
}

func (c *Consumer) decode(e *lifecycle.Delivery, o events.Origin, m *nats.Msg, stored time.Time) (f *events.Failure) {
	if o.Stream == events.StreamParked || o.Stream == events.StreamSchedules {
		e.Runs, f = c.decoder.DecodeParkedTo(&e.Event, o, events.Header(m.Header), m.Data, stored)
		return f
	}
	e.Runs = events.FirstRun
	return c.decoder.DecodeTo(&e.Event, o, events.Header(m.Header), m.Data, stored)
}

// isIdempotent reports whether an event must not run again once it has succeeded.
func (c *Consumer) isIdempotent(e *lifecycle.Delivery) bool {
	return c.cfg.Catalog.Idempotent(e.Owner, e.Worker)
}

// deliver adds a delivery to the events in flight and passes the events on.
func (c *Consumer) deliver(d *pulled) {
	if len(d.all) == 0 {
		return
	}
	c.observe(d)
	c.inflight.add(d.all)
	c.metrics.delivered.Add(float64(len(d.all)))
	for _, h := range d.again {
		if h.event.Origin.Deliveries > 1 {
			c.metrics.redelivered.Inc()
		}
	}
	c.forbid(d)
	if len(d.again)+len(d.later)+len(d.pubAcks)+len(d.malformed) > 0 {
		c.api.Do(func() { c.settler.takePulled(d) })
	}
	if d.late {
		c.api.Do(func() {
			for _, e := range d.fresh {
				c.settler.giveBackRunning(e.Holder.(*entry))
			}
		})
	} else if len(d.fresh) > 0 {
		c.dispatcher.Submit(d.fresh)
	}
}

// observe shows the observers the events of d that may run.
func (c *Consumer) observe(d *pulled) {
	for _, o := range c.cfg.Observers.All() {
		for _, e := range d.fresh {
			o.Delivered(e)
		}
		for _, list := range [][]*entry{d.again, d.later} {
			for _, h := range list {
				o.Delivered(&h.event)
			}
		}
	}
}

// takePulled handles the events of a delivery that must not run at once.
func (s *settler) takePulled(d *pulled) {
	for _, h := range d.again {
		if h.cancelled { // forbid has ended it, or it was cancelled before forbid looked
			s.endCancelled(h)
			continue
		}
		(&checks{settler: s, h: h}).from(checkClaim)
	}
	for _, h := range d.later {
		if h.cancelled {
			s.endCancelledLater(h)
			continue
		}
		if !s.waiting.May(&h.event, h.here) {
			s.refuse(h, s.waiting.TooMany(h.event.Owner))
			continue
		}
		s.delay(h, h.event.DeliverAt)
	}
	s.endPubAcks(d.pubAcks)
	for _, m := range d.malformed {
		s.refuse(m.entry, m.failure)
	}
}
