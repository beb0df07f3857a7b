package consumer

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/events"
)

// hookPatience is how long a dead letter is tried to be told. Then it is only counted: an event of which nobody can be told, as when
// the event stream is full of such, must not stay in it.
const hookPatience = 30 * time.Second

// tell tells whoever d names of it, and then does then. d is stored, and its event not yet acked; so a crash tells it again. It runs on the
// settle goroutine.
func (c *Consumer) tell(h *held, d *events.DeadLetter, then func()) {
	m, err := c.hookMessage(d)
	if err != nil {
		c.log.Warn().Err(err).Str("event", d.EventID).Str("worker", h.event.Target()).Stringer("to", d.Hook).Msg("nobody is told of this dead letter")
		c.metrics.hooks.WithLabelValues("refused").Inc()
		then()
		return
	}
	if d.Hook.Subject != "" && !d.Hook.JetStream {
		outcome := "told"
		if err := c.nc.PublishMsg(m); err != nil {
			outcome = "lost"
			c.log.Warn().Err(err).Str("event", d.EventID).Stringer("to", d.Hook).Msg("nobody could be told of this dead letter")
		}
		c.metrics.hooks.WithLabelValues(outcome).Inc()
		then()
		return
	}
	c.publishHook(d, m, newRetrier(hookPatience), then)
}

func (c *Consumer) publishHook(d *events.DeadLetter, m *nats.Msg, tries *retrier, then func()) {
	c.asker.ask(m, c.answerWait(), time.Now(), func(answer *nats.Msg, err error) {
		err = pubAck(answer, err)
		c.do(func() {
			if err == nil {
				c.metrics.hooks.WithLabelValues("told").Inc()
				then()
				return
			}
			c.log.Warn().Err(err).Str("event", d.EventID).Stringer("to", d.Hook).Msg("nobody could be told of this dead letter")
			if !c.after(tries, func() { c.publishHook(d, m, tries, then) }) {
				c.metrics.hooks.WithLabelValues("lost").Inc()
				then()
			}
		})
	})
}

// hookMessage is what tells of d: the letter as JSON, without what does not fit.
func (c *Consumer) hookMessage(d *events.DeadLetter) (*nats.Msg, error) {
	id := "dead:" + d.Identity()
	m := &nats.Msg{Header: nats.Header{
		events.HeaderEventID: {id}, events.HeaderMsgID: {d.Owner + ":" + id}, events.HeaderDeadOf: {d.Identity()},
		events.HeaderContentType: {"application/json"},
	}}
	if m.Subject = d.Hook.Subject; m.Subject == "" {
		m.Subject = c.cfg.Prefix.Event(events.Task, d.Owner, d.Hook.Worker)
	} else if err := c.decoder.CheckReplyTo(m.Subject, d.Owner); err != nil {
		return nil, fmt.Errorf("onDeadLetter: %w", err)
	}
	j := d.JSON(true)
	for _, shrink := range []func(){
		func() { j.Body, j.BodyBase64 = nil, nil },
		func() { j.Stack, j.Raw = "", nil },
		func() { j.Headers = nil },
		func() {},
	} {
		var err error
		if m.Data, err = json.Marshal(j); err != nil {
			return nil, err
		}
		if int64(m.Size()) < c.nc.MaxPayload()-payloadHeadroom {
			break
		}
		shrink()
	}
	return m, nil
}
