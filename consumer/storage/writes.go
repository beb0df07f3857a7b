package storage

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/consumer/jsapi"
	"github.com/pinwheel-run/pinwheel/internal/lib/stored"
)

// broken is a failure of nats-server to write a stream. It no longer counts after a reconnect: a restarted server
// writes again.
type broken struct {
	failure    *stored.Failure
	reconnects uint64 // of the connection, when the failure was found
}

// failure returns why nats-server no longer writes the stream, or nil when it does or when that is not known.
func (f *level) failure(nc *nats.Conn) *stored.Failure {
	b := f.broken.Load()
	if b == nil || b.reconnects != nc.Stats().Reconnects {
		return nil
	}
	return b.failure
}

// checkWrites checks whether nats-server writes a stream. With several replicas, a server that cannot write leaves it
// to the others.
func (u *Usage) checkWrites(ctx context.Context, f *level, info *jetstream.StreamInfo) error {
	if info.Config.Replicas > 1 {
		f.broken.Store(nil)
		return nil
	}
	reconnects := u.nc.Stats().Reconnects
	failure, err := stored.Failed(ctx, u.nc, f.name)
	if err != nil {
		return err
	}
	if failure == nil {
		if f.broken.Swap(nil) != nil {
			u.log.Info().Str("stream", f.name).Msg("nats-server stores messages there again")
		}
		return nil
	}
	f.broken.Store(&broken{failure, reconnects})
	return nil
}

// probed notes the result of a probe message.
func (u *Usage) probed(asked time.Time, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case err == nil:
		delete(u.refused, accountStorage)
		u.silent, u.unheard = time.Time{}, nil
	case jsapi.IsFull(err): // JetStream answered
		u.silent, u.unheard = time.Time{}, nil
	default:
		if u.unheard = err; u.silent.IsZero() {
			u.silent = asked
		}
	}
}

// unanswered returns an error when probe messages have not been stored for a while, or nil.
func (u *Usage) unanswered() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.silent.IsZero() || time.Since(u.silent) < silentFor {
		return nil
	}
	return fmt.Errorf("storage: JetStream has stored nothing since %s: %w", u.silent.UTC().Format(time.RFC3339), u.unheard)
}

// Silent returns why JetStream does not acknowledge messages for streams now, or nil. It has no path or name of the
// server: owners may read it. It may be called from any goroutine.
func (u *Usage) Silent(streams ...string) error {
	for _, name := range streams {
		f := u.of(name)
		if failed := f.failure(u.nc); failed != nil {
			return failed
		}
		if err := f.leaderless(); err != nil {
			return err
		}
	}
	return u.unanswered()
}
