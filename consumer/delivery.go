package consumer

import (
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/events"
)

// Dispatcher takes events to run. Submit never blocks and never refuses; each event comes back in
// exactly one final Settlement (Ack, Dead, Return or Park), or in a Retry, after which it is submitted again.
type Dispatcher interface {
	Submit(batch []*events.Event)
}

// delivery is what one turn of the puller took in.
type delivery struct {
	now       time.Time
	late      bool // pulling has stopped: all goes back
	all       []*held
	fresh     []*events.Event // delivered for the first time
	later     []*held         // to run later, as their publishers want
	again     []*held         // delivered before, or replayed: something must be looked up
	malformed []malformed
	pubAcks   []*held // no events at all
	last      []*held // parked ones after which the stream had no more of their owner
}

type malformed struct {
	held    *held
	failure *events.Failure
}

// add decodes one delivery.
func (d *delivery) add(c *Consumer, from *source, m *nats.Msg, o events.Origin, stored time.Time) {
	h := &held{from: from, stored: stored, ack: o.AckSubject, epoch: from.epoch.Load(), renewed: d.now, absences: c.absences.Load()}
	e, failure := c.decode(o, m, stored)
	e.Held, h.event, e.Parked = h, e, from.stream == StreamParked
	if from.stream == StreamSchedules {
		if h.record = carriedRecord(m.Header.Get(events.ParkedRecord)); h.record != nil {
			e.CrashedAlone = h.record.CrashedAlone
		}
	}
	h.once = failure == nil && c.once(e)
	if !e.Deadline.IsZero() {
		e.Deadline = c.clock.own(e.Deadline)
	}
	c.withParts(e)
	d.all = append(d.all, h)
	switch {
	case isPubAck(m.Header, m.Data):
		h.phase, h.unspent = settling, from.owner
		d.pubAcks = append(d.pubAcks, h)
	case failure != nil:
		h.phase, h.unspent = settling, from.owner
		d.malformed = append(d.malformed, malformed{h, failure})
	case !e.DeliverAt.IsZero(): // however often it comes from here: it runs from where it is put
		h.phase = settling
		d.later = append(d.later, h)
	case o.Deliveries > 1 || isReplay(e) || h.once || e.Overlaps() == events.OverlapReplace:
		h.unspent = from.owner
		d.again = append(d.again, h)
	default:
		h.phase = running
		d.fresh = append(d.fresh, e)
	}
}

func (c *Consumer) decode(o events.Origin, m *nats.Msg, stored time.Time) (*events.Event, *events.Failure) {
	if o.Stream == StreamParked || o.Stream == StreamSchedules {
		return c.decoder.DecodeParked(o, events.Header(m.Header), m.Data, stored)
	}
	return c.decoder.Decode(o, events.Header(m.Header), m.Data, stored)
}

// deliver takes a delivery into the table and hands the events on.
func (c *Consumer) deliver(d *delivery) {
	if len(d.all) == 0 {
		return
	}
	c.table.add(d.all)
	c.metrics.delivered.Add(float64(len(d.all)))
	for _, h := range d.again {
		if h.event.Origin.Deliveries > 1 {
			c.metrics.redelivered.Inc()
		}
		c.arrive(h)
	}
	if len(d.later) > 0 {
		c.do(func() {
			for _, h := range d.later {
				if !c.mayWait(h.event.Owner) {
					c.refuse(h, c.tooManyWait(h.event.Owner))
					continue
				}
				c.putOff(h, h.event.DeliverAt)
			}
		})
	}
	if len(d.pubAcks) > 0 {
		c.do(func() { c.dropPubAcks(d.pubAcks) })
	}
	if len(d.malformed) > 0 {
		c.do(func() {
			for _, m := range d.malformed {
				c.refuse(m.held, m.failure)
			}
		})
	}
	if d.late {
		c.do(func() { c.giveBackRunning(d.fresh) })
	} else if len(d.fresh) > 0 {
		c.dispatcher.Submit(d.fresh)
	}
}

// refuse settles an event that breaks the wire contract; dispatch never sees it.
func (c *Consumer) refuse(h *held, f *events.Failure) {
	e := h.event
	o := events.Outcome{Verdict: events.Dead, Failure: f}
	if e.Kind == events.Fetch && e.ReplyTo != "" {
		o.Verdict = events.Ack
	}
	s := events.Settlement{Event: e, Outcome: o}
	if e.ReplyTo != "" {
		s.Reply = events.FailureReply(e, f)
	}
	c.carryOut(h, s)
}
