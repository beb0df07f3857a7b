package consumer

import (
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/consumer/bodies"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// replier publishes replies, one after the other, and reuses its memory. It belongs to the settle goroutine.
type replier struct {
	nc      *nats.Conn
	chunks  *bodies.Chunks
	metrics *metrics
	encoder events.ReplyEncoder
	msg     nats.Msg
}

// message is the message of r. It is valid until the next call.
func (x *replier) message(e *lifecycle.Delivery, r *events.Reply) *nats.Msg {
	x.msg.Subject, x.msg.Reply, x.msg.Data = e.ReplyTo, r.CreditSubject, r.Body
	x.msg.Header = nats.Header(x.encoder.Encode(r))
	return &x.msg
}

// again publishes r again. It ignores the error: when the reply cannot be published, the ack is not confirmed either.
func (x *replier) again(e *lifecycle.Delivery, r *events.Reply) { _ = x.nc.PublishMsg(x.message(e, r)) }

// publish publishes r to the Reply-To of e, and returns what it published. A reply that is too large for NATS is
// replaced by a failure that says so.
func (x *replier) publish(e *lifecycle.Delivery, r *events.Reply) (*events.Reply, error) {
	var body *bodies.Body
	if r.Stream != nil {
		body = x.chunks.Begin(e, r)
	}
	err := nats.ErrMaxPayload
	if r.Dropped == 0 {
		err = x.nc.PublishMsg(x.message(e, r))
	}
	if body != nil {
		if err != nil {
			x.chunks.Forget(body)
			return r, err
		}
		x.chunks.Flow(body)
	}
	why := ""
	switch {
	case errors.Is(err, nats.ErrBadHeaderMsg):
		why = "the response has a header with a name that NATS does not take"
	case errors.Is(err, nats.ErrMaxPayload):
		why = fmt.Sprintf("the response has %d bytes and its headers; a message has at most %d", max(len(r.Body), r.Dropped), x.nc.MaxPayload())
		x.metrics.tooLarge.Inc()
	}
	if why != "" {
		r = instead(e, r, why)
		err = x.nc.PublishMsg(x.message(e, r))
	}
	if err == nil {
		x.metrics.replies.Inc()
	}
	return r, err
}

// instead is the reply that is published instead of r, which does not fit a message.
func instead(e *lifecycle.Delivery, r *events.Reply, why string) *events.Reply {
	small := e.FailureReply(events.NewFailure(events.ReasonTooLarge, why, ""))
	small.Attempt, small.Version, small.Duration = r.Attempt, r.Version, r.Duration
	return small
}

// tooLargeToKeep is the log line of an event whose result has that many bytes.
func tooLargeToKeep(bytes int) string {
	return fmt.Sprintf(
		"the result has %d bytes and is too large to be kept: a client that asks for it again gets a failure, %s",
		bytes, events.ReasonTooLarge)
}
