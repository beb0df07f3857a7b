package consumer

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/events"
)

// callQueue is the queue group of the bridge: one process takes each call.
const callQueue = "pinwheel"

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
	if m.Reply == "" && isPubAck(m.Header, m.Data) {
		c.pubAckDropped(m.Subject)
		return
	}
	kind, owner, worker, err := c.cfg.Prefix.ParseCall(m.Subject)
	if m.Reply != "" {
		if err := c.decoder.CheckReplyTo(m.Reply, owner); err != nil {
			c.metrics.callsRefused.Inc()
			c.seldom.Warn().Err(err).Str("subject", m.Subject).Msg("call refused, and not answered")
			return
		}
	}
	from := callerOf(m, kind)
	if err != nil {
		b.refuse(from, events.Fail(events.ReasonMalformed, "%v", err))
		return
	}
	if failed := c.usage.events.failure(c.nc); failed != nil {
		b.refuse(from, notStored(failed))
		return
	}
	f := c.door.admit(owner, m.Size(), time.Now())
	if f == nil {
		f = c.admitStored(owner, m.Size())
	}
	if f != nil {
		c.metrics.callsLimited.Inc()
		b.refuse(from, f)
		return
	}
	header, id, f := callHeader(m, owner)
	if f != nil {
		b.refuse(from, f)
		return
	}
	if !c.storing.begin(owner) {
		b.refuse(from, events.Fail(events.ReasonUnavailable, "%s", c.storing.full(owner)))
		return
	}
	event := &nats.Msg{Subject: c.cfg.Prefix.Event(kind, owner, worker), Header: header, Data: m.Data}
	c.asker.ask(event, c.answerWait(), time.Now(), func(answer *nats.Msg, err error) {
		c.storing.end(owner)
		if err := pubAck(answer, err); err != nil {
			c.noRoom(StreamEvents, err)
			if failed := c.usage.events.failure(c.nc); failed != nil {
				err = failed
			}
			b.refuse(from, notStored(err))
			return
		}
		if isDuplicate(answer) { // whoever sent it first gets the reply
			b.refuse(from, events.Fail(events.ReasonMalformed, "header %s %q: the event of that id is stored already, and this call stored nothing",
				events.HeaderMsgID, id))
			return
		}
		c.metrics.callsStored.Inc()
	})
}

func notStored(err error) *events.Failure {
	return events.Fail(events.ReasonUnavailable, "the event was not stored: %v", err)
}

// callHeader is the headers of a call's event: what the caller sent, but for what steers NATS. A message id is made the owner's: JetStream takes it
// for the whole stream. id is the one that the caller sent.
func callHeader(m *nats.Msg, owner string) (h nats.Header, id string, f *events.Failure) {
	h = nats.Header(userHeader(events.Header(m.Header)))
	if m.Reply != "" {
		h.Set(events.HeaderReplyTo, m.Reply)
	}
	switch ids := events.Header(m.Header).Fold(events.HeaderMsgID); {
	case len(ids) > 1:
		return nil, "", events.Fail(events.ReasonMalformed, "header %s does not appear once: its case makes no difference", events.HeaderMsgID)
	case len(ids) == 1 && ids[0] != "":
		id = ids[0]
		h.Set(events.HeaderMsgID, owner+":"+id)
		if given := events.Header(h).Fold(events.HeaderEventID); len(given) == 0 || len(given) == 1 && given[0] == "" {
			maps.DeleteFunc(h, func(name string, _ []string) bool { return strings.EqualFold(name, events.HeaderEventID) })
			h.Set(events.HeaderEventID, id)
		}
	}
	return h, id, nil
}

// caller is what is kept of a call while it waits to be stored: not its headers and body, which are with JetStream.
type caller struct {
	kind                      events.Kind
	subject, replyTo, eventID string
}

func callerOf(m *nats.Msg, kind events.Kind) caller {
	c := caller{kind: kind, subject: m.Subject, replyTo: m.Reply}
	for _, name := range []string{events.HeaderEventID, events.HeaderMsgID} {
		if ids := events.Header(m.Header).Fold(name); c.eventID == "" && len(ids) == 1 && len(ids[0]) <= events.MaxEventID {
			c.eventID = ids[0]
		}
	}
	return c
}

// refuse answers a call that is not stored.
func (b *bridge) refuse(from caller, f *events.Failure) {
	b.c.metrics.callsRefused.Inc()
	if from.replyTo == "" {
		if f.Reason == events.ReasonRate {
			return // there may be very many
		}
		b.c.seldom.Warn().Str("subject", from.subject).Str("error", f.Error()).Msg("call refused; nobody waits for the answer")
		return
	}
	e := &events.Event{Kind: from.kind, ID: from.eventID, ReplyTo: from.replyTo}
	if _, err := b.c.publishReply(&replier{}, e, events.FailureReply(e, f)); err != nil {
		b.c.log.Warn().Err(err).Msg("refused call could not be answered")
	}
}
