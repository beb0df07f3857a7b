package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
	"github.com/pinwheel-run/pinwheel/internal/lib/stored"
)

// StreamStats describes the content of a stream.
type StreamStats struct {
	Messages uint64    `json:"messages"`
	Bytes    uint64    `json:"bytes"`
	Oldest   time.Time `json:"oldest,omitzero"` // when its first message was stored
}

// FleetStats describes what is stored for the whole fleet. A stream that is being created again is nil.
type FleetStats struct {
	Dead   *StreamStats `json:"dead,omitempty"`
	Events *StreamStats `json:"events,omitempty"`
	Node   string       `json:"node"`
	Parked *StreamStats `json:"parked,omitempty"`
}

// Stats returns what is stored for the whole fleet.
func (o *Operations) Stats(ctx context.Context, _ None) (FleetStats, error) {
	all := FleetStats{Node: o.node}
	for _, of := range []struct {
		into                   **StreamStats
		stream, filter, anchor string
	}{
		{&all.Events, events.StreamEvents, o.subjects.AllStored(), o.subjects.Anchor()},
		{&all.Parked, events.StreamParked, o.subjects.ParkedOwner("*"), o.subjects.ParkedAnchor()},
		{&all.Dead, events.StreamDead, o.subjects.AllDead(), ""},
	} {
		switch one, err := o.streamStats(ctx, of.stream, of.filter, of.anchor); {
		case err == nil:
			*of.into = &one
		case !errors.Is(err, jetstream.ErrStreamNotFound):
			return all, err
		}
	}
	return all, nil
}

// streamStats describes the messages of a stream that match filter. All other messages of the stream are under anchor.
func (o *Operations) streamStats(ctx context.Context, stream, filter, anchor string) (one StreamStats, err error) {
	s, err := o.js.Stream(ctx, stream)
	if err != nil {
		return one, fmt.Errorf("stream %s: %w", stream, err)
	}
	one.Bytes = s.CachedInfo().State.Bytes
	if one.Messages, err = resources.Count(ctx, o.js, stream, anchor); err != nil || one.Messages == 0 {
		return one, err
	}
	first, err := stored.Get(ctx, o.nc, stream, stored.Request{Seq: 1, Next: filter})
	if errors.Is(err, stored.ErrNone) { // it was removed just now
		return one, nil
	}
	if err != nil {
		return one, fmt.Errorf("oldest message of stream %s: %w", stream, err)
	}
	one.Oldest = first.Time
	return one, nil
}
