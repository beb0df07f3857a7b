package consumer

import (
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/events"
)

// callQueue is the queue group of the bridge: one process takes each call.
const callQueue = "pinwheel"

// maxCalls is how many calls may wait to be stored; more are refused.
const maxCalls = 1 << 14

// bridge stores plain NATS requests as events, with the requester's inbox as Reply-To.
type bridge struct {
	c   *Consumer
	sub *nats.Subscription
}

// openCalls subscribes to calls, if the configuration says so.
func (c *Consumer) openCalls() (*bridge, error) {
	b := &bridge{c: c}
	if !c.cfg.Calls {
		return b, nil
	}
	sub, err := c.nc.QueueSubscribe(c.cfg.Prefix.AllCalls(), callQueue, b.take)
	if err != nil {
		return nil, fmt.Errorf("consumer: subscribe to calls: %w", err)
	}
	b.sub = sub
	return b, nil
}

// close takes no more calls; those that have arrived are stored.
func (b *bridge) close() {
	if b.sub == nil {
		return
	}
	closed := b.sub.StatusChanged(nats.SubscriptionClosed)
	if err := b.sub.Drain(); err != nil {
		return // not connected: nothing arrives
	}
	select {
	case <-closed:
	case <-time.After(goodbye):
	}
}

// take stores one call, or says at once why not.
func (b *bridge) take(m *nats.Msg) {
	c := b.c
	kind, owner, worker, err := c.cfg.Prefix.ParseCall(m.Subject)
	if m.Reply != "" {
		if err := c.decoder.CheckReplyTo(m.Reply, owner); err != nil {
			c.metrics.callsRefused.Inc()
			c.log.Warn().Err(err).Str("subject", m.Subject).Msg("call refused, and not answered")
			return
		}
	}
	if err != nil {
		b.refuse(m, kind, events.Fail(events.ReasonMalformed, "%v", err))
		return
	}
	if f := c.door.admit(owner, m.Size(), time.Now()); f != nil {
		c.metrics.callsLimited.Inc()
		b.refuse(m, kind, f)
		return
	}
	if c.asker.waiting() > maxCalls {
		b.refuse(m, kind, events.Fail(events.ReasonUnavailable, "too many calls wait to be stored"))
		return
	}
	event := &nats.Msg{Subject: c.cfg.Prefix.Event(kind, owner, worker), Header: callHeader(m, owner), Data: m.Data}
	c.asker.ask(event, c.answerWait(), time.Now(), func(answer *nats.Msg, err error) {
		if err := pubAck(answer, err); err != nil {
			b.refuse(m, kind, events.Fail(events.ReasonUnavailable, "the event was not stored: %v", err))
			return
		}
		if isDuplicate(answer) { // whoever sent it first gets the reply
			b.refuse(m, kind, events.Fail(events.ReasonMalformed, "header %s %q: the event of that id is stored already, and this call stored nothing",
				events.HeaderMsgID, m.Header.Get(events.HeaderMsgID)))
			return
		}
		c.metrics.callsStored.Inc()
	})
}

// callHeader is the headers of a call's event: what the caller sent, but for what steers NATS.
// A message id is made the owner's: JetStream takes it for the whole stream.
func callHeader(m *nats.Msg, owner string) nats.Header {
	h := nats.Header(userHeader(events.Header(m.Header)))
	delete(h, events.HeaderReplyTo)
	if m.Reply != "" {
		h.Set(events.HeaderReplyTo, m.Reply)
	}
	if id := m.Header.Get(events.HeaderMsgID); id != "" {
		h.Set(events.HeaderMsgID, owner+":"+id)
		if h.Get(events.HeaderEventID) == "" {
			h.Set(events.HeaderEventID, id)
		}
	}
	return h
}

// refuse answers a call that is not stored.
func (b *bridge) refuse(m *nats.Msg, kind events.Kind, f *events.Failure) {
	b.c.metrics.callsRefused.Inc()
	if m.Reply == "" {
		if f.Reason == events.ReasonRate {
			return // there may be very many
		}
		b.c.log.Warn().Str("subject", m.Subject).Str("error", f.Error()).Msg("call refused; nobody waits for the answer")
		return
	}
	e := &events.Event{Kind: kind, ID: m.Header.Get(events.HeaderEventID), ReplyTo: m.Reply}
	if _, err := b.c.publishReply(&replier{}, e, events.FailureReply(e, f)); err != nil {
		b.c.log.Warn().Err(err).Msg("refused call could not be answered")
	}
}
