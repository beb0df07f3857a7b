package janitor

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/consumer/jsapi"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/lib/stored"
)

const (
	// anchorLook is how often a process checks whether an anchor is far behind.
	anchorLook = time.Second
	// anchorBehind is how many messages may be stored after an anchor before the anchor is moved to the end of the stream
	// again.
	anchorBehind = 64
)

// Anchor is a message that stays in a stream and that no consumer reads. nats-server (2.15.2) keeps messages in files
// of some megabytes. When the last file has no messages left, as it does whenever everything is acked, nats-server
// creates another file. It keeps the old one for its records of removed messages that are younger than the first
// message of the stream: a file and up to 256 KB of memory for each event that comes alone. An anchor in the last file
// prevents that. An anchor in an old file causes it, so the anchor follows the newest messages (ADR 0017).
type Anchor struct {
	stream, subject string
	seen            atomic.Uint64 // stream sequence of the last event that came to this process; written by the puller
	at              uint64        // stream sequence of the anchor at the last check; the janitor's
}

// Anchors returns the anchors of a fleet: one for each stream whose messages are removed once they are acked.
func Anchors(prefix events.Subjects) []*Anchor {
	return []*Anchor{
		{stream: events.StreamEvents, subject: prefix.Anchor()},
		{stream: events.StreamSchedules, subject: prefix.SchedulesAnchor()},
		{stream: events.StreamParked, subject: prefix.ParkedAnchor()},
	}
}

// AnchorOf returns the anchor of a stream, or nil if it has none.
func AnchorOf(anchors []*Anchor, stream string) *Anchor {
	for _, p := range anchors {
		if p.stream == stream {
			return p
		}
	}
	return nil
}

// See notes an event of the stream.
func (p *Anchor) See(seq uint64) {
	if seq > p.seen.Load() {
		p.seen.Store(seq)
	}
}

func (p *Anchor) behind() bool { return p.seen.Load() >= p.at+anchorBehind }

// KeepAnchors moves the anchors after the newest messages until life ends.
func (j *Janitor) KeepAnchors(life context.Context) {
	tick := time.NewTicker(anchorLook)
	defer tick.Stop()
	for {
		select {
		case <-life.Done():
			return
		case <-tick.C:
		}
		for _, p := range j.cfg.Anchors {
			if !p.behind() || !j.js.Conn().IsConnected() {
				continue
			}
			ctx, cancel := context.WithTimeout(life, 5*time.Second)
			if err := p.follow(ctx, j.js); err != nil && life.Err() == nil {
				j.log.Debug().Err(err).Msg("an anchor could not be put at the end of its stream; trying again")
			}
			cancel()
		}
	}
}

// follow puts the anchor at the end of its stream, unless another process has done so. Then it removes all earlier
// anchors, including one left by a process that died in between.
func (p *Anchor) follow(ctx context.Context, js jetstream.JetStream) error {
	s, err := js.Stream(ctx, p.stream)
	if err != nil {
		return fmt.Errorf("anchor of stream %s: %w", p.stream, err)
	}
	p.seen.Store(min(p.seen.Load(), s.CachedInfo().State.LastSeq)) // the stream may have been created again since
	switch last, err := stored.Get(ctx, js.Conn(), p.stream, stored.Request{Last: p.subject}); {
	case err == nil:
		p.at = last.Sequence
	case errors.Is(err, stored.ErrNone):
		p.at = 0
	default:
		return fmt.Errorf("anchor of stream %s: %w", p.stream, err)
	}
	if !p.behind() {
		return nil
	}
	before := p.at
	if p.at, err = p.publish(ctx, js, before); err != nil || p.at == before {
		return err // another process has done so, and removes the earlier anchors
	}
	for m, err := range stored.All(ctx, js.Conn(), p.stream, p.subject, 1) {
		if err != nil {
			return err
		}
		if m.Sequence >= p.at {
			return nil
		}
		if err := s.DeleteMsg(ctx, m.Sequence); err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
			return fmt.Errorf("anchor of stream %s: %w", p.stream, err)
		}
	}
	return nil
}

// Put stores the first anchor of a stream. It publishes nothing if there is one already: while a stream gets more
// replicas, such a publish may not be answered for long.
func (p *Anchor) Put(ctx context.Context, js jetstream.JetStream) error {
	switch _, err := stored.Get(ctx, js.Conn(), p.stream, stored.Request{Last: p.subject}); {
	case err == nil:
		return nil
	case !errors.Is(err, stored.ErrNone):
		return fmt.Errorf("anchor of stream %s: %w", p.stream, err)
	}
	_, err := p.publish(ctx, js, 0)
	return err
}

// publish stores an anchor if the sequence of the last one is after, 0 for none. It returns the sequence of the new
// anchor, or after when another one was stored meanwhile.
func (p *Anchor) publish(ctx context.Context, js jetstream.JetStream, after uint64) (uint64, error) {
	ack, err := js.PublishMsg(ctx, &nats.Msg{Subject: p.subject}, jetstream.WithExpectLastSequencePerSubject(after),
		jetstream.WithRetryAttempts(0))
	switch {
	case err == nil:
		return ack.Sequence, nil
	case jsapi.IsWrongLastSequence(err):
		return after, nil
	}
	return after, fmt.Errorf("anchor of stream %s: %w", p.stream, err)
}
