package assets

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// Count is how many messages a stream has that are not of subject but: of the streams with a pin there may be two of those (ADR 0017).
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
