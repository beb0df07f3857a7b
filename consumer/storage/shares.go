package storage

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/consumer/jsapi"
	"github.com/pinwheel-run/pinwheel/internal/lib/guard"
	"github.com/pinwheel-run/pinwheel/internal/lib/stored"
)

// shared is a stream of which each owner has a share: as much as is free. So a single owner gets half of it, and two
// owners that take all they can get a third each. There is always room for other owners. An owner that has more than
// its share loses its oldest messages. The ledger is built from headers only, and only once an owner could have more
// than its share.
type shared struct {
	*level
	owned  func(owner string) string // the filter of an owner's messages; the owner is its third token
	ledger *ledger
}

const (
	// A part of the ledger has about 1/shareGrain of the stream's limit.
	shareGrain = 1024
	// storedOverhead is how many bytes nats-server stores in addition to a message's subject, headers and body.
	storedOverhead = 22 + 8
	// headerMsgSize is the header in which nats-server gives the size of an omitted body.
	headerMsgSize = "Nats-Msg-Size"
	// nearShare, in percent, is how much of its share an owner has when that is logged.
	nearShare = 75
)

// keepShares keeps each owner to its share of a stream.
func (u *Usage) keepShares(ctx context.Context, s *shared, info *jetstream.StreamInfo) error {
	limit, total := s.limit.Load(), s.bytes.Load()
	free := limit - min(limit, total)
	if guard.StoredShares.Off() || limit == 0 || total < free/100*nearShare {
		s.ledger = nil // all owners together have less than one may have
		return nil
	}
	if s.ledger != nil {
		s.ledger.begin(info.State.FirstSeq)
	}
	if s.ledger == nil || s.ledger.through > info.State.LastSeq || s.ledger.bytes > total+total/8 { // much was removed
		s.ledger = &ledger{}
	}
	if err := u.readShare(ctx, s); err != nil {
		return err
	}
	for owner, holding := range s.ledger.owners {
		if holding.bytes > free/100*nearShare && u.mayReport("share "+s.name+" "+owner) {
			u.log.Warn().Str("stream", s.name).Str("owner", owner).Uint64("bytes", holding.bytes).Uint64("share", free).
				Msg("an owner has almost used up its share of the storage; beyond the share, its oldest messages are removed")
		}
	}
	for _, o := range s.ledger.overdrafts(total, limit) {
		if err := u.removeOldest(ctx, s, o); err != nil {
			return err
		}
	}
	return nil
}

// removeOldest removes what an owner has to give up.
func (u *Usage) removeOldest(ctx context.Context, s *shared, o overdraft) error {
	stream, err := u.js.Stream(ctx, s.name)
	if err != nil {
		return err
	}
	if err := stream.Purge(ctx, jetstream.WithPurgeSubject(s.owned(o.owner)),
		jetstream.WithPurgeSequence(o.before)); err != nil {
		return fmt.Errorf("stream %s: the oldest of owner %s: %w", s.name, o.owner, err)
	}
	s.ledger.cut(o.owner, o.before)
	s.bytes.Store(s.bytes.Load() - min(s.bytes.Load(), o.gives))
	u.dropped.WithLabelValues(s.name).Add(float64(o.gives))
	if u.mayReport("dropped " + s.name + " " + o.owner) { // the metric counts all
		u.log.Error().Str("stream", s.name).Str("owner", o.owner).Uint64("stored", o.had).Uint64("share", o.free).
			Uint64("dropped", o.gives).
			Msg("owner had more stored than its share: its oldest were removed")
	}
	return nil
}

// readShare reads the messages that were stored in a stream since the last read.
func (u *Usage) readShare(ctx context.Context, s *shared) error {
	scan, err := stored.HeadersFrom(ctx, u.nc, s.name, s.ledger.through+1)
	if err != nil {
		return fmt.Errorf("stream %s: %w", s.name, err)
	}
	grain := s.limit.Load() / shareGrain
	for m, err := range scan.Messages(ctx) {
		if err != nil {
			return err // it names the stream
		}
		if owner := thirdToken(m.Subject); owner != "" {
			s.ledger.add(owner, m.Sequence, storedSize(m.Subject, m.Header, u.nc.MaxPayload()), grain)
		}
	}
	return nil
}

// storedSize is about how many bytes a message takes, when only its headers were received. The server puts the body's
// size after all other headers. If that cannot be read, because the publisher's headers are malformed, the message
// counts as the largest possible one.
func storedSize(subject string, h nats.Header, maxPayload int64) uint64 {
	body := uint64(maxPayload)
	if sizes := h[headerMsgSize]; len(sizes) > 0 {
		if n, err := strconv.ParseUint(sizes[len(sizes)-1], 10, 32); err == nil {
			body = n
		}
	}
	return body + uint64(len(subject)+jsapi.HeaderSize(h)+storedOverhead)
}

// thirdToken returns the third token of a subject. In the shared streams that is the owner.
func thirdToken(subject string) string {
	_, rest, _ := strings.Cut(subject, ".")
	_, rest, _ = strings.Cut(rest, ".")
	token, _, _ := strings.Cut(rest, ".")
	return token
}
