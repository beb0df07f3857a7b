package consumer

import (
	"errors"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/events"
)

const (
	// noRollup is no value that headerRollup may have.
	noRollup = "none"
	// codeRollupFailed is JetStream's answer to that.
	codeRollupFailed = 10111
	// codeDuplicateUnderWay is the answer of a cluster that is just storing a message of the same id.
	codeDuplicateUnderWay = 10158
)

// parkedWindow is how long JetStream remembers what was parked. A process that dies between parking an event and its ack leaves
// both; the one that gets it then asks within this time, if the fleet lives.
func (c Config) parkedWindow() time.Duration { return max(2*time.Minute, 4*c.AckWait) }

// askParked finds out whether h, whose last delivery ended with its process, was parked by then: then it lives on among the
// parked events, or has ended there, and this one of the two is acked. Otherwise it calls then on the settle goroutine.
//
// The question is the event's own parking with a header that JetStream refuses: it looks first whether it has the message id. It must be a
// header that the leader refuses by itself. A wrong Nats-Expected-Last-Msg-Id, say, nats-server 2.15.2 gives to all copies of the stream, which
// take it for a failing disk and stop for good.
func (c *Consumer) askParked(h *held, then func()) {
	m := &nats.Msg{Subject: c.cfg.Prefix.Parked(h.event), Header: nats.Header{
		events.HeaderMsgID: {events.ParkedID(h.event)}, headerRollup: {noRollup},
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
		case err != nil && (!errors.As(err, &refused) || refused.ErrCode == codeDuplicateUnderWay):
			c.arriveLater(h, err, "it could not be found out whether a redelivered event is parked; trying again", func() { c.askParked(h, then) })
		default:
			if err != nil && refused.ErrCode != codeRollupFailed {
				c.log.Warn().Err(err).Str("event", h.event.ID).Msg("JetStream does not say whether a redelivered event is parked; running it")
			}
			h.tries = nil
			c.do(then)
		}
	})
}
