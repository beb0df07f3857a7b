package consumer

import (
	"errors"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/events"
)

// replier publishes replies, one after the other, in memory that it uses again. Its zero value is ready. It is for one goroutine.
type replier struct {
	encoder events.ReplyEncoder
	msg     nats.Msg
}

// message is the message of r. It is valid until the next.
func (x *replier) message(e *events.Event, r *events.Reply) *nats.Msg {
	x.msg.Subject, x.msg.Reply, x.msg.Data = e.ReplyTo, r.CreditSubject, r.Body
	x.msg.Header = nats.Header(x.encoder.Encode(r))
	return &x.msg
}

// publishReply publishes r to where e wants it, and returns what it published. A reply that NATS does not take for its size is
// replaced by one that says so.
func (c *Consumer) publishReply(x *replier, e *events.Event, r *events.Reply) (*events.Reply, error) {
	var body *outgoing
	if r.Stream != nil {
		body = c.bodies.begin(e, r)
	}
	err := nats.ErrMaxPayload
	if r.Dropped == 0 {
		err = c.nc.PublishMsg(x.message(e, r))
	}
	if body != nil {
		if err != nil {
			c.bodies.forget(body)
			return r, err
		}
		c.bodies.flow(body)
	}
	if errors.Is(err, nats.ErrMaxPayload) {
		f := events.Fail(events.ReasonTooLarge, "the response has %d bytes and its headers; a message has at most %d", max(len(r.Body), r.Dropped), c.nc.MaxPayload())
		small := events.FailureReply(e, f)
		small.Attempt, small.Version, small.Duration = r.Attempt, r.Version, r.Duration
		r = small
		c.metrics.tooLarge.Inc()
		err = c.nc.PublishMsg(x.message(e, r))
	}
	if err == nil {
		c.metrics.replies.Inc()
	}
	return r, err
}
