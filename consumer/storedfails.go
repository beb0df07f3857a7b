package consumer

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/internal/stored"
)

// broken is a failure of nats-server to write a stream. A server that was started again has another connection, and writes.
type broken struct {
	failure    *stored.Failure
	reconnects uint64 // of the connection, when that was found
}

// failure says that nats-server does not write the stream any more; nil: it does, or that is not known.
func (f *fullness) failure(nc *nats.Conn) *stored.Failure {
	b := f.broken.Load()
	if b == nil || b.reconnects != nc.Stats().Reconnects {
		return nil
	}
	return b.failure
}

// lookAtWrites asks whether nats-server writes a stream. With several copies a server that cannot write leaves it to the others.
func (c *Consumer) lookAtWrites(ctx context.Context, f *fullness, info *jetstream.StreamInfo) error {
	if info.Config.Replicas > 1 {
		f.broken.Store(nil)
		return nil
	}
	reconnects := c.nc.Stats().Reconnects
	failure, err := stored.Failed(ctx, c.nc, f.name)
	if err != nil {
		return err
	}
	if failure == nil {
		if f.broken.Swap(nil) != nil {
			c.log.Info().Str("stream", f.name).Msg("nats-server stores messages there again")
		}
		return nil
	}
	f.broken.Store(&broken{failure, reconnects})
	return nil
}

// probed notes what came of a message that was stored to find out.
func (s *usage) probed(asked time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		delete(s.refused, accountStorage)
		s.silent, s.unheard = time.Time{}, nil
	case isFull(err): // said so itself
		s.silent, s.unheard = time.Time{}, nil
	default:
		if s.unheard = err; s.silent.IsZero() {
			s.silent = asked
		}
	}
}

// unanswered says that nothing has been stored for a while although it was tried, or nil.
func (s *usage) unanswered() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.silent.IsZero() || time.Since(s.silent) < silentFor {
		return nil
	}
	return fmt.Errorf("storage: JetStream has stored nothing since %s: %w", s.silent.UTC().Format(time.RFC3339), s.unheard)
}
