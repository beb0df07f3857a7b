package consumer

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/events"
)

// Backlog is how many events of one worker are in JetStream and have not ended.
type Backlog struct {
	Stored  uint64 // in the event stream, including those that run now
	Parked  uint64 // until their owner has room, or their worker is resumed
	Delayed uint64 // until their time
}

// BacklogOf counts the events of a worker. A stream that is not there has none.
func BacklogOf(ctx context.Context, js jetstream.JetStream, s events.Subjects, owner,
	worker string) (b Backlog, err error) {
	for _, in := range []struct {
		stream  string
		filters []string
		into    *uint64
	}{
		{events.StreamEvents, s.StoredFor(owner, worker), &b.Stored},
		{events.StreamParked, []string{s.ParkedFor(owner, worker), events.Held(s.ParkedFor(owner, worker))}, &b.Parked},
		{events.StreamSchedules, []string{s.WaitingEvents(owner, worker, "")}, &b.Delayed},
	} {
		stream, err := js.Stream(ctx, in.stream)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			continue
		}
		if err != nil {
			return b, fmt.Errorf("stream %s: %w", in.stream, err)
		}
		for _, filter := range in.filters {
			info, err := stream.Info(ctx, jetstream.WithSubjectFilter(filter))
			if err != nil {
				return b, fmt.Errorf("stream %s: %w", in.stream, err)
			}
			for _, n := range info.State.Subjects {
				*in.into += n
			}
		}
	}
	return b, nil
}

// meanSize is the average size of the events in the stream, in bytes; 0 when it is not known.
func (c *Consumer) meanSize(ctx context.Context) int {
	stream, err := c.js.Stream(ctx, events.StreamEvents)
	if err != nil {
		return 0
	}
	state := stream.CachedInfo().State
	return int(state.Bytes / max(1, state.Msgs))
}
