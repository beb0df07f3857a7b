package consumer

import (
	"errors"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/events"
)

const (
	// headerExpectLastMsgID makes JetStream store a message only after a certain other.
	headerExpectLastMsgID = "Nats-Expected-Last-Msg-Id"
	// codeWrongLastMsgID is its answer when another message was the last.
	codeWrongLastMsgID = 10070
)

// parkedWindow is how long JetStream remembers what was parked. A process that dies between parking an event and its ack leaves
// both; the one that gets it then asks within this time, if the fleet lives.
func (c Config) parkedWindow() time.Duration { return max(2*time.Minute, 4*c.AckWait) }

// askParked finds out whether h, whose last delivery ended with its process, was parked by then: then it lives on among the
// parked events, or has ended there, and this one of the two is acked. Otherwise it calls then on the settle goroutine.
//
// The question is the event's own parking under a condition that is never true: JetStream looks first whether
// it has the message id.
func (c *Consumer) askParked(h *held, then func()) {
	m := &nats.Msg{Subject: c.cfg.Prefix.Parked(h.event), Header: nats.Header{
		events.HeaderMsgID: {events.ParkedID(h.event)}, headerExpectLastMsgID: {"none"},
	}}
	c.asker.ask(m, c.answerWait(), time.Now(), func(answer *nats.Msg, err error) {
		var refused *apiError
		err = pubAck(answer, err)
		switch {
		case err == nil && isDuplicate(answer):
			c.do(func() {
				if c.table.move(h, settling, loading) {
					c.ack(h)
					c.metrics.ended(h.event.Kind, events.Park)
				}
			})
		case err != nil && !errors.As(err, &refused):
			c.arriveLater(h, err, "it could not be found out whether a redelivered event is parked; trying again", func() { c.askParked(h, then) })
		default:
			if err != nil && refused.ErrCode != codeWrongLastMsgID {
				c.log.Warn().Err(err).Str("event", h.event.ID).Msg("JetStream does not say whether a redelivered event is parked; running it")
			}
			h.tries = nil
			c.do(then)
		}
	})
}
