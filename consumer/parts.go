package consumer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/stored"
)

// StreamBodies has the request bodies that are stored apart, in parts.
const StreamBodies = "PINWHEEL_BODIES"

// bodiesAge is how long the parts of a body stay whose event does not come, or does not end.
const bodiesAge = 24 * time.Hour

func bodiesStream(cfg Config, maxMsg int32) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: StreamBodies, Description: "Request bodies in parts", Subjects: []string{cfg.Prefix.AllParts()},
		SubjectTransform: &jetstream.SubjectTransformConfig{Source: cfg.Prefix.AllParts(), Destination: cfg.Prefix.StoredParts()},
		Retention:        jetstream.LimitsPolicy, Storage: jetstream.FileStorage, Replicas: cfg.Replicas,
		MaxBytes: cfg.MaxBytes, MaxMsgSize: maxMsg, Discard: jetstream.DiscardNew, Duplicates: 2 * time.Minute, AllowDirect: true,
		MaxAge: bodiesAge,
	}
}

// withParts lets the body of e be read, if it is stored apart.
func (c *Consumer) withParts(e *events.Event) {
	if e.Parts == nil {
		return
	}
	if e.Parts.Live {
		e.Parts.Read = (&liveBody{c: c, event: e, n: unknownParts}).read
		return
	}
	e.Parts.Read = func(ctx context.Context, i int) ([]byte, error) {
		data, err := stored.LastData(ctx, c.nc, StreamBodies, c.cfg.Prefix.BodyPart(e.Owner, e.Parts.ID, i))
		if errors.Is(err, stored.ErrNone) {
			return nil, fmt.Errorf("part %d of %d of body %s is not there: parts are stored before their event, and kept for %s", i, e.Parts.N, e.Parts.ID, bodiesAge)
		}
		if err != nil {
			return nil, fmt.Errorf("part %d of body %s: %w", i, e.Parts.ID, err)
		}
		return data, nil
	}
}

// dropParts removes the body of an event that has ended. If it fails they go by themselves.
func (c *Consumer) dropParts(e *events.Event) {
	if e.Parts == nil || e.Parts.ID == "" {
		return
	}
	body, _ := json.Marshal(map[string]string{"filter": c.cfg.Prefix.BodyParts(e.Owner, e.Parts.ID)}) // strings cannot fail
	m := &nats.Msg{Subject: "$JS.API.STREAM.PURGE." + StreamBodies, Data: body}
	c.asker.ask(m, c.answerWait(), time.Now(), func(_ *nats.Msg, err error) {
		if err != nil {
			c.log.Debug().Err(err).Str("event", e.ID).Msg("the parts of an ended event's body stay until their time is over")
		}
	})
}

// openParts takes parts from requesters, as calls are taken: no message of an owner, nor a header of one, reaches JetStream.
func (c *Consumer) openParts() (*bridge, error) {
	sub, err := c.nc.QueueSubscribe(c.cfg.Prefix.AllBodies(), callQueue, c.takePart)
	if err != nil {
		return nil, fmt.Errorf("consumer: subscribe to parts of bodies: %w", err)
	}
	return &bridge{c: c, sub: sub}, nil
}

// takePart has one part stored, and passes the stream's answer on. A part for whose answer nobody waits is not stored: it may be an answer itself.
func (c *Consumer) takePart(m *nats.Msg) {
	owner, id, i, err := c.cfg.Prefix.ParseBodyPart(m.Subject)
	replyTo := m.Reply
	if replyTo == "" || c.decoder.CheckReplyTo(replyTo, owner) != nil {
		return
	}
	if err == nil && i == events.EndPart {
		_, err = events.DecodeEnd(m.Data)
		if errors.Is(err, events.ErrGivenUp) {
			err = nil
		}
	}
	if err != nil {
		c.refusePart(replyTo, http.StatusBadRequest, err.Error())
		return
	}
	if !c.storing.begin(owner) {
		c.refusePart(replyTo, http.StatusTooManyRequests, c.storing.full(owner))
		return
	}
	part := &nats.Msg{Subject: c.cfg.Prefix.StorePart(owner, id, i), Data: m.Data}
	c.asker.ask(part, c.answerWait(), time.Now(), func(answer *nats.Msg, err error) {
		c.storing.end(owner)
		if err != nil {
			c.refusePart(replyTo, http.StatusServiceUnavailable, fmt.Sprintf("the part was not stored: %v", err))
			return
		}
		_ = c.nc.Publish(replyTo, answer.Data) // not connected: whoever waits sends the part again
		_ = c.nc.Publish(c.cfg.Prefix.PartCame(owner, id), nil)
	})
}

// refusePart answers as JetStream would.
func (c *Consumer) refusePart(replyTo string, code int, why string) {
	body, _ := json.Marshal(map[string]any{"error": apiError{Code: code, Description: why}, "stream": StreamBodies, "seq": 0}) // strings and numbers cannot fail
	_ = c.nc.Publish(replyTo, body)
}
