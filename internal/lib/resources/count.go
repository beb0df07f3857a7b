package resources

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// Count is the number of messages of a stream without those of the subject but. A stream with an anchor message may
// have two of them (ADR 0017).
func Count(ctx context.Context, js jetstream.JetStream, stream, but string) (uint64, error) {
	s, err := js.Stream(ctx, stream)
	if err != nil {
		return 0, fmt.Errorf("stream %s: %w", stream, err)
	}
	info, err := s.Info(ctx, jetstream.WithSubjectFilter(but))
	if err != nil {
		return 0, fmt.Errorf("stream %s: %w", stream, err)
	}
	return info.State.Msgs - info.State.Subjects[but], nil
}
