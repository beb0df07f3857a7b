package consumer

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/internal/guard"
)

// shared is a stream of which each owner has a share: no more than there is free. So an owner alone has half of it, two that take all they can a third
// each, and there is room for others at any time. Who has more gives up its oldest messages. What each has is read, by headers only, and only
// once somebody could have more than its share.
type shared struct {
	*fullness
	owned  func(owner string) string // the filter of an owner's messages; the owner is its third token
	ledger *ledger
}

const (
	// sharedPatience is how long a message that is there may take to come.
	sharedPatience = 2 * time.Second
	// sharedGrain is the part of a stream to which an owner's messages are counted.
	sharedGrain = 1024
	// storedOverhead is what nats-server stores beside a message's subject, headers and body.
	storedOverhead = 22 + 8
	// headerMsgSize is where nats-server tells the size of a body that it leaves out.
	headerMsgSize = "Nats-Msg-Size"
	// nearShare, in percent, is how much of its share an owner has of whom people are told.
	nearShare = 75
)

// keepShares keeps each owner to its share of a stream.
func (c *Consumer) keepShares(ctx context.Context, s *shared, info *jetstream.StreamInfo) error {
	limit, total := s.limit.Load(), s.bytes.Load()
	free := limit - min(limit, total)
	if guard.StoredShares.Off() || limit == 0 || total < free/100*nearShare {
		s.ledger = nil // all together have less than an owner may
		return nil
	}
	if s.ledger != nil {
		s.ledger.begin(info.State.FirstSeq)
	}
	if s.ledger == nil || s.ledger.through > info.State.LastSeq || s.ledger.bytes > total+total/8 { // much was removed from the middle
		s.ledger = &ledger{}
	}
	if err := c.readShared(ctx, s); err != nil {
		return err
	}
	for owner, shelf := range s.ledger.owners {
		if shelf.bytes > free/100*nearShare && c.mayTell("share "+s.name+" "+owner) {
			c.log.Warn().Str("stream", s.name).Str("owner", owner).Uint64("bytes", shelf.bytes).Uint64("share", free).
				Msg("an owner has nearly, or more than, its share stored: beyond it its oldest go")
		}
	}
	for _, o := range s.ledger.overdrafts(total, limit) {
		if err := c.takeBack(ctx, s, o); err != nil {
			return err
		}
	}
	return nil
}

// takeBack removes what an owner has to give up.
func (c *Consumer) takeBack(ctx context.Context, s *shared, o overdraft) error {
	stream, err := c.js.Stream(ctx, s.name)
	if err != nil {
		return err
	}
	if err := stream.Purge(ctx, jetstream.WithPurgeSubject(s.owned(o.owner)), jetstream.WithPurgeSequence(o.before)); err != nil {
		return fmt.Errorf("stream %s: the oldest of owner %s: %w", s.name, o.owner, err)
	}
	s.ledger.cut(o.owner, o.before)
	s.bytes.Store(s.bytes.Load() - min(s.bytes.Load(), o.gives))
	c.metrics.dropped.WithLabelValues(s.name).Add(float64(o.gives))
	c.log.Error().Str("stream", s.name).Str("owner", o.owner).Uint64("stored", o.had).Uint64("share", o.free).Uint64("dropped", o.gives).
		Msg("owner had more stored than its share: its oldest were removed")
	return nil
}

// readShared reads what came to a stream since it was read last.
func (c *Consumer) readShared(ctx context.Context, s *shared) error {
	reader, err := c.js.CreateConsumer(ctx, s.name, jetstream.ConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: s.ledger.through + 1, HeadersOnly: true,
		AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true, Replicas: 1, InactiveThreshold: storedWait,
	})
	if err != nil {
		return fmt.Errorf("stream %s: %w", s.name, err)
	}
	defer func() { _ = c.js.DeleteConsumer(ctx, s.name, reader.CachedInfo().Name) }() // it would go by itself
	if reader.CachedInfo().NumPending == 0 {
		return nil
	}
	it, err := reader.Messages(jetstream.PullMaxMessages(1000))
	if err != nil {
		return fmt.Errorf("stream %s: %w", s.name, err)
	}
	defer it.Stop()
	grain := s.limit.Load() / sharedGrain
	for {
		m, err := next(ctx, it)
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			return nil // what was to come is gone
		}
		if err != nil {
			return fmt.Errorf("stream %s: %w", s.name, err)
		}
		meta, err := m.Metadata()
		if err != nil {
			return fmt.Errorf("stream %s: %w", s.name, err)
		}
		if owner := thirdToken(m.Subject()); owner != "" {
			s.ledger.add(owner, meta.Sequence.Stream, c.storedSize(m.Subject(), m.Headers()), grain)
		}
		if meta.NumPending == 0 {
			return nil
		}
	}
}

// next is the next message, if it comes within a while.
func next(ctx context.Context, it jetstream.MessagesContext) (jetstream.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, sharedPatience)
	defer cancel()
	return it.Next(jetstream.NextContext(ctx))
}

// storedSize is about what a message takes of which only the headers came. The server puts the body's size behind all other headers; where it is not to
// be read, because the publisher's headers are none, the message counts as the largest there is.
func (c *Consumer) storedSize(subject string, h nats.Header) uint64 {
	body := uint64(c.nc.MaxPayload()) //nolint:gosec // not negative
	if sizes := h[headerMsgSize]; len(sizes) > 0 {
		if n, err := strconv.ParseUint(sizes[len(sizes)-1], 10, 32); err == nil {
			body = n
		}
	}
	return body + uint64(len(subject)+headerSize(h)+storedOverhead) //nolint:gosec // small
}

// thirdToken is where the streams that are shared have the owner in their subjects.
func thirdToken(subject string) string {
	_, rest, _ := strings.Cut(subject, ".")
	_, rest, _ = strings.Cut(rest, ".")
	token, _, _ := strings.Cut(rest, ".")
	return token
}
