package runs

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
)

// Config configures the run history of a fleet.
type Config struct {
	Prefix   events.Subjects
	Node     string           // names this process
	Rule     workers.KeepRuns // of owners whose policy has none; "" = the fleet has no history
	MaxBytes int64            // of the stream
	MaxAge   time.Duration
	Replicas int
}

// Keeps reports whether the fleet has a run history.
func (c Config) Keeps() bool { return c.Rule != "" }

// stream is the stream of a fleet. The largest record has MaxLines of lines, and its JSON may be six times as long as
// the texts. Package storage removes the oldest records of owners that have more than their share. Where that is too
// late, the stream removes the oldest of all: it never refuses a record.
func (c Config) stream() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: events.StreamRuns, Description: "Records of ended attempts",
		Subjects:  []string{c.Prefix.Runs("", "", "", "", "")},
		Retention: jetstream.LimitsPolicy, Storage: jetstream.FileStorage, Replicas: max(1, c.Replicas),
		MaxAge: c.MaxAge, MaxBytes: c.MaxBytes, MaxMsgSize: maxRecord, Discard: jetstream.DiscardOld, AllowDirect: true,
	}
}

// Resources are all resources of this package in JetStream.
func Resources(c Config) []resources.Resource {
	s := c.stream()
	return []resources.Resource{{Stream: &s}}
}

// create creates the stream, or updates it to what it should be.
func (c Config) create(ctx context.Context, js jetstream.JetStream, log zerolog.Logger) error {
	if err := (&resources.Reconciler{JS: js, Log: log}).Stream(ctx, c.stream()); err != nil {
		return fmt.Errorf("stream %s: %w", events.StreamRuns, err)
	}
	return nil
}
