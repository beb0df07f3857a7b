package consumer

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/internal/stored"
)

const (
	// pinLook is how often a process looks whether a pin is far behind.
	pinLook = time.Second
	// pinBehind is how many messages may have been stored after a pin before it is put at the end again.
	pinBehind = 64
)

// pin is a message that stays in a stream and that no consumer wants. nats-server (2.15.2) keeps messages in files of some megabytes. When
// the last one has nothing left in it, as it has whenever all is acked, nats-server makes another, and keeps the old one for what it says of
// removed messages that are younger than the first of the stream: a file and up to 256 KB of memory for each event that comes alone. A pin in
// the last file prevents that, and one in a file of the past causes it, so it follows what is stored (ADR 0017).
type pin struct {
	stream, subject string
	seen            atomic.Uint64 // stream sequence of the last event that came here; written by the puller
	at              uint64        // that of the pin, when it was looked at last; pinLoop's
}

func newPins(cfg Config) []*pin {
	return []*pin{
		{stream: StreamEvents, subject: cfg.Prefix.Pin()}, {stream: StreamSchedules, subject: cfg.Prefix.SchedulesPin()},
		{stream: StreamParked, subject: cfg.Prefix.ParkedPin()},
	}
}

// pinOf is the pin of a stream, or nil for one that has none.
func pinOf(pins []*pin, stream string) *pin {
	for _, p := range pins {
		if p.stream == stream {
			return p
		}
	}
	return nil
}

// see notes an event of the stream.
func (p *pin) see(seq uint64) {
	if seq > p.seen.Load() {
		p.seen.Store(seq)
	}
}

func (p *pin) behind() bool { return p.seen.Load() >= p.at+pinBehind }

// pinLoop has the pins follow.
func (c *Consumer) pinLoop(life context.Context) {
	tick := time.NewTicker(pinLook)
	defer tick.Stop()
	for {
		select {
		case <-life.Done():
			return
		case <-tick.C:
		}
		for _, p := range c.pins {
			if !p.behind() || !c.nc.IsConnected() {
				continue
			}
			ctx, cancel := context.WithTimeout(life, 5*time.Second)
			if err := p.follow(ctx, c.js); err != nil && life.Err() == nil {
				c.log.Debug().Err(err).Msg("a pin could not be put at the end of its stream; trying again")
			}
			cancel()
		}
	}
}

// follow puts the pin at the end of its stream, unless another process has, and then removes those before it: also one that a process left
// that died in between.
func (p *pin) follow(ctx context.Context, js jetstream.JetStream) error {
	s, err := js.Stream(ctx, p.stream)
	if err != nil {
		return fmt.Errorf("pin of stream %s: %w", p.stream, err)
	}
	p.seen.Store(min(p.seen.Load(), s.CachedInfo().State.LastSeq)) // it may be another stream of this name than the events came from
	switch last, err := stored.Get(ctx, js.Conn(), p.stream, stored.Request{Last: p.subject}); {
	case err == nil:
		p.at = last.Sequence
	case errors.Is(err, stored.ErrNone):
		p.at = 0
	default:
		return fmt.Errorf("pin of stream %s: %w", p.stream, err)
	}
	if !p.behind() {
		return nil
	}
	before := p.at
	if p.at, err = p.publish(ctx, js, before); err != nil || p.at == before {
		return err // another process has, and removes what is before it
	}
	for m, err := range stored.All(ctx, js.Conn(), p.stream, p.subject, 1) {
		if err != nil {
			return err
		}
		if m.Sequence >= p.at {
			return nil
		}
		if err := s.DeleteMsg(ctx, m.Sequence); err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
			return fmt.Errorf("pin of stream %s: %w", p.stream, err)
		}
	}
	return nil
}

// put puts the first pin of a stream. Where there is one nothing is published: of a stream that is
// just getting more copies such a publish may stay without an answer for long.
func (p *pin) put(ctx context.Context, js jetstream.JetStream) error {
	switch _, err := stored.Get(ctx, js.Conn(), p.stream, stored.Request{Last: p.subject}); {
	case err == nil:
		return nil
	case !errors.Is(err, stored.ErrNone):
		return fmt.Errorf("pin of stream %s: %w", p.stream, err)
	}
	_, err := p.publish(ctx, js, 0)
	return err
}

// publish stores a pin when the last one is at after, 0 for none, and returns where it is: after, when another one was stored meanwhile.
func (p *pin) publish(ctx context.Context, js jetstream.JetStream, after uint64) (uint64, error) {
	ack, err := js.PublishMsg(ctx, &nats.Msg{Subject: p.subject}, jetstream.WithExpectLastSequencePerSubject(after), jetstream.WithRetryAttempts(0))
	var api *jetstream.APIError
	switch {
	case err == nil:
		return ack.Sequence, nil
	case errors.As(err, &api) && api.ErrorCode == codeWrongLastSequence:
		return after, nil
	}
	return after, fmt.Errorf("pin of stream %s: %w", p.stream, err)
}
