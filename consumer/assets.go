package consumer

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/consumer/bodies"
	"github.com/pinwheel-run/pinwheel/consumer/janitor"
	"github.com/pinwheel-run/pinwheel/consumer/jsapi"
	"github.com/pinwheel-run/pinwheel/consumer/results"
	"github.com/pinwheel-run/pinwheel/consumer/schedule"
	"github.com/pinwheel-run/pinwheel/consumer/sources"
	"github.com/pinwheel-run/pinwheel/consumer/storage"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/lib/guard"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
)

const (
	// payloadHeadroom is the difference between the maximum message size of the server and of the event stream, so that
	// every event also fits with the headers of a dead letter.
	payloadHeadroom = 32 << 10
	// attemptsTTL is much longer than the longest delay of any retry policy (24 h).
	attemptsTTL = 14 * 24 * time.Hour
	// leastAttempts is the minimum size of the bucket of attempts: room for the records of a hundred thousand events that
	// failed a few times.
	leastAttempts = 64 << 20
	// maxAckPending is for all processes together. The real limit is each process's Window.
	maxAckPending = 1 << 17
)

// CreateAssets creates the streams, consumers and buckets that are missing in JetStream. Of those that exist it changes
// only what loses nothing. Many processes may do it at once. maxPayload is the server's largest message in bytes. It
// tries a few times, each time from the start: creation races with other processes and with deletions, and a server
// that has just started may not answer a request. While the cluster lacks a server that a stream needs, or a leader,
// it tries for half a minute. It returns a *resources.ImmutableError at once when a setting cannot be changed in place,
// and a *resources.PrefixError when streams belong to a fleet with another prefix.
func CreateAssets(ctx context.Context, js jetstream.JetStream, cfg Config, maxPayload int64) error {
	return createAssets(ctx, &resources.Reconciler{JS: js, Log: zerolog.Nop()}, cfg, maxPayload)
}

func createAssets(ctx context.Context, k *resources.Reconciler, cfg Config, maxPayload int64) error {
	const fast, slow = 5, 20
	for try := 1; ; try++ {
		step := min(try-1, fast)
		err := tryAssets(ctx, time.Second<<step, k, cfg, maxPayload)
		if err == nil || ctx.Err() != nil || resources.Final(err) {
			return err
		}
		most := fast
		if code, _ := jsapi.ErrCode(err); code == jsapi.CodeNoPeers || code == jsapi.CodeUnavailable {
			most = slow
		}
		if try >= most {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(50 * time.Millisecond << step):
		}
	}
}

// CheckPrefix returns a *resources.PrefixError when an existing stream belongs to a fleet with another prefix.
// CreateAssets does so too, but only after it has created the streams that come before. CheckPrefix is for callers that
// must not begin.
func CheckPrefix(ctx context.Context, js jetstream.JetStream, s events.Subjects) error {
	return resources.CheckPrefix(ctx, js, Assets(Config{Prefix: s}, 0))
}

// Removed is about how many messages the fleet would remove from a stream if it had that limit of bytes. owners has the
// number of messages of each owner. shared is false for a stream from which the fleet removes nothing.
func Removed(stream string, owners map[string]uint64, bytes, limit uint64) (messages uint64, shared bool) {
	return storage.Removed(stream, owners, bytes, limit)
}

// tryAssets tries once. Each request may take as long as patience.
func tryAssets(ctx context.Context, patience time.Duration, k *resources.Reconciler, cfg Config,
	maxPayload int64) error {
	var lanes error // a lane that fails does not keep the others from working
	anchors := janitor.Anchors(cfg.Prefix)
	for _, a := range Assets(cfg, maxPayload) {
		ctx, cancel := context.WithTimeout(ctx, patience)
		err := k.Reconcile(ctx, a)
		if err == nil && a.Stream != nil {
			if p := janitor.AnchorOf(anchors, a.Stream.Name); p != nil {
				err = p.Put(ctx, k.JS)
			}
		}
		cancel()
		switch {
		case err == nil:
		case a.Consumer != nil:
			lanes = errors.Join(lanes, fmt.Errorf("consumer: %w", err))
		default:
			return errors.Join(fmt.Errorf("consumer: %w", err), lanes)
		}
	}
	return lanes
}

// Assets returns all streams, consumers and buckets that a fleet of this configuration has in JetStream for its events.
// maxPayload is the server's largest message in bytes. The event stream comes first.
func Assets(cfg Config, maxPayload int64) []resources.Resource {
	list := streams(cfg, maxPayload)
	for lane := range events.Lanes {
		c := laneConsumer(cfg, lane)
		list = append(list, resources.Resource{Consumer: &c, Of: events.StreamEvents})
	}
	list = append(list, scheduleAssets(cfg)...)
	list = append(list, resources.Resource{Bucket: sources.Bucket(cfg.Replicas)})
	return append(list, resources.Resource{Bucket: &jetstream.KeyValueConfig{
		Bucket: events.BucketAttempts, Description: "Runs of events that were delivered more than once",
		MaxBytes: max(leastAttempts, cfg.MaxBytes/8), History: 1, TTL: attemptsTTL, LimitMarkerTTL: time.Minute,
		Replicas: cfg.Replicas, Storage: jetstream.FileStorage,
	}})
}

// streams returns all streams. Rollup, schedules and TTLs are off in streams to which owners publish: with such headers
// they could delete or fill the stream.
func streams(cfg Config, maxPayload int64) []resources.Resource {
	maxMsg := int32(-1)
	switch {
	case maxPayload > 2*payloadHeadroom:
		maxMsg = int32(min(maxPayload-payloadHeadroom, 1<<30))
	case maxPayload > 0:
		maxMsg = int32(maxPayload * 3 / 4)
	}
	return []resources.Resource{
		{Stream: &jetstream.StreamConfig{
			Name: events.StreamEvents, Description: "Events to run", Subjects: []string{cfg.Prefix.AllEvents(),
				cfg.Prefix.AllSources(), cfg.Prefix.Anchor()},
			SubjectTransform: &jetstream.SubjectTransformConfig{Source: cfg.Prefix.AllEvents(),
				Destination: cfg.Prefix.Stored()},
			Retention: jetstream.WorkQueuePolicy, Storage: jetstream.FileStorage, Replicas: cfg.Replicas,
			MaxBytes: cfg.MaxBytes, MaxMsgSize: maxMsg, Discard: jetstream.DiscardNew, Duplicates: cfg.Duplicates,
			AllowDirect: true,
		}},
		bodies.Stream(cfg.Prefix, cfg.Replicas, cfg.MaxBytes, maxMsg),
		{Stream: new(results.Stream(cfg.Prefix, cfg.Replicas, cfg.MaxBytes/8, cfg.ResultAge))},
		{Stream: &jetstream.StreamConfig{
			Name: events.StreamDead, Description: "Events that failed for good", Subjects: []string{cfg.Prefix.AllDead()},
			Retention: jetstream.LimitsPolicy, Storage: jetstream.FileStorage, Replicas: cfg.Replicas,
			// package storage removes the oldest
			MaxAge: cfg.DeadLetterAge, MaxBytes: cfg.deadBytes(), Discard: jetstream.DiscardNew,
			AllowDirect: true, AllowRollup: true, // an edit replaces a letter in one step
		}},
		{Stream: &jetstream.StreamConfig{
			Name: events.StreamParked, Description: "Events over their owner's limit",
			Subjects:  []string{cfg.Prefix.AllParked()},
			Retention: jetstream.WorkQueuePolicy, Storage: jetstream.FileStorage, Replicas: cfg.Replicas,
			MaxBytes: cfg.MaxBytes, Discard: jetstream.DiscardNew, Duplicates: cfg.parkedWindow(), AllowDirect: true,
		}},
	}
}

// deadBytes is the size of the stream of dead letters.
func (c Config) deadBytes() int64 {
	if guard.StoredShares.Off() {
		return 0
	}
	return c.DeadLetterBytes
}

func laneConsumer(cfg Config, lane int) jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Durable: laneName(lane), FilterSubject: cfg.Prefix.Lane(lane),
		AckPolicy: jetstream.AckExplicitPolicy, DeliverPolicy: jetstream.DeliverAllPolicy,
		AckWait: cfg.AckWait, MaxDeliver: -1, MaxAckPending: maxAckPending, // replicas: always those of the stream
	}
}

func laneName(lane int) string { return "lane-" + strconv.Itoa(lane) }

// scheduleAssets returns the stream of schedules and the consumers of events that are due.
func scheduleAssets(cfg Config) []resources.Resource {
	s := schedule.Stream(cfg.Prefix, cfg.Replicas, cfg.movedWindow())
	list := []resources.Resource{{Stream: &s}}
	for lane := range events.DueLanes {
		c := laneConsumer(cfg, 0)
		c.Durable, c.FilterSubject = dueName(lane), cfg.Prefix.DueLane(lane)
		list = append(list, resources.Resource{Consumer: &c, Of: events.StreamSchedules})
	}
	return list
}

func dueName(lane int) string { return "due-" + strconv.Itoa(lane) }
