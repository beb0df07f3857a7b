package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/events"
)

// StreamBodies has the request bodies that are stored apart, in parts.
const StreamBodies = "PINWHEEL_BODIES"

// bodiesAge is how long the parts of a body stay whose event does not come, or does not end.
const bodiesAge = 24 * time.Hour

func bodiesStream(cfg Config, maxMsg int32) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: StreamBodies, Description: "Request bodies in parts", Subjects: []string{cfg.Prefix.AllBodies()},
		Retention: jetstream.LimitsPolicy, Storage: jetstream.FileStorage, Replicas: cfg.Replicas,
		MaxBytes: cfg.MaxBytes, MaxMsgSize: maxMsg, Discard: jetstream.DiscardNew, Duplicates: 2 * time.Minute, AllowDirect: true,
		MaxAge: bodiesAge,
	}
}

// storedBodies is the stream of the parts. It is looked up once: a stream that is made again has the same name.
func (c *Consumer) storedBodies(ctx context.Context) (jetstream.Stream, error) {
	if s := c.parts.Load(); s != nil {
		return *s, nil
	}
	s, err := c.js.Stream(ctx, StreamBodies)
	if err == nil {
		c.parts.Store(&s)
	}
	return s, err
}

// withParts lets the body of e be read, if it is stored apart.
func (c *Consumer) withParts(e *events.Event) {
	if e.Parts == nil {
		return
	}
	e.Parts.Read = func(ctx context.Context, i int) ([]byte, error) {
		s, err := c.storedBodies(ctx)
		if err != nil {
			return nil, fmt.Errorf("body %s: %w", e.Parts.ID, err)
		}
		m, err := s.GetLastMsgForSubject(ctx, c.cfg.Prefix.BodyPart(e.Owner, e.Parts.ID, i))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return nil, fmt.Errorf("part %d of %d of body %s is not there: parts are stored before their event, and kept for %s", i, e.Parts.N, e.Parts.ID, bodiesAge)
		}
		if err != nil {
			return nil, fmt.Errorf("part %d of body %s: %w", i, e.Parts.ID, err)
		}
		return m.Data, nil
	}
}

// dropParts removes the body of an event that has ended. If it fails they go by themselves.
func (c *Consumer) dropParts(e *events.Event) {
	if e.Parts == nil || e.Parts.ID == "" {
		return
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), c.cfg.AckWait)
		defer cancel()
		s, err := c.storedBodies(ctx)
		if err == nil {
			err = s.Purge(ctx, jetstream.WithPurgeSubject(c.cfg.Prefix.BodyParts(e.Owner, e.Parts.ID)))
		}
		if err != nil {
			c.log.Debug().Err(err).Str("event", e.ID).Msg("the parts of an ended event's body stay until their time is over")
		}
	}()
}
