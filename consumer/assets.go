package consumer

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/assets"
	"github.com/pinwheel-run/pinwheel/internal/guard"
)

// Names of what Pinwheel keeps in JetStream.
const (
	StreamEvents   = "PINWHEEL_EVENTS"
	StreamDead     = "PINWHEEL_DEAD"
	StreamParked   = "PINWHEEL_PARKED"
	BucketAttempts = "PINWHEEL_ATTEMPTS"
)

const (
	// payloadHeadroom is left between what the event stream takes and what the server takes, so
	// that every event fits again with the headers of a dead letter.
	payloadHeadroom = 32 << 10
	// attemptsTTL outlives any retry policy's longest delay (24 h) by far.
	attemptsTTL = 14 * 24 * time.Hour
	// leastAttempts is the least size of the bucket of attempts: room for the records of a hundred thousand events that failed some times.
	leastAttempts = 64 << 20
	// maxAckPending is over all processes; each process's Window is the real bound.
	maxAckPending = 1 << 17
	// codeWrongLastSequence is JetStream's answer to an expectation that is not met.
	codeWrongLastSequence = 10071
)

// CreateAssets creates what is missing in JetStream and brings forward what differs. Many processes may
// do it at once. maxPayload is the server's largest message in bytes. It tries a few times, from the
// start: creation races with other processes and deletions, and a server that has just started may
// leave a request without an answer. What cannot be changed in place is an *assets.FrozenError, at once, and streams of a fleet of another
// prefix are an *assets.PrefixError.
func CreateAssets(ctx context.Context, js jetstream.JetStream, cfg Config, maxPayload int64) error {
	return createAssets(ctx, &assets.Keeper{JS: js, Log: zerolog.Nop()}, cfg, maxPayload)
}

func createAssets(ctx context.Context, k *assets.Keeper, cfg Config, maxPayload int64) error {
	var err error
	for try := range 5 {
		if err = tryAssets(ctx, time.Second<<try, k, cfg, maxPayload); err == nil || ctx.Err() != nil || assets.Final(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(50 * time.Millisecond << try):
		}
	}
	return err
}

// CheckPrefix returns an *assets.PrefixError when a stream that is there belongs to a fleet of another prefix. CreateAssets does, too, after it has made
// those that come before; this is for those who must not begin.
func CheckPrefix(ctx context.Context, js jetstream.JetStream, s events.Subjects) error {
	return assets.CheckPrefix(ctx, js, Assets(Config{Prefix: s}, 0))
}

// tryAssets tries once; each request may take as long as patience.
func tryAssets(ctx context.Context, patience time.Duration, k *assets.Keeper, cfg Config, maxPayload int64) error {
	var lanes error // one that fails does not keep the others from working
	pins := newPins(cfg)
	for _, a := range Assets(cfg, maxPayload) {
		ctx, cancel := context.WithTimeout(ctx, patience)
		err := k.Make(ctx, a)
		if err == nil && a.Stream != nil {
			if p := pinOf(pins, a.Stream.Name); p != nil {
				err = p.put(ctx, k.JS)
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

// Assets is all that a fleet of this configuration has in JetStream for its events. maxPayload is the server's largest
// message in bytes. The event stream comes first.
func Assets(cfg Config, maxPayload int64) []assets.Asset {
	var list []assets.Asset
	for _, s := range streams(cfg, maxPayload) {
		list = append(list, assets.Asset{Stream: &s})
	}
	for lane := range events.Lanes {
		c := laneConsumer(cfg, lane)
		list = append(list, assets.Asset{Consumer: &c, Of: StreamEvents})
	}
	list = append(list, scheduleAssets(cfg)...)
	return append(list, assets.Asset{Bucket: &jetstream.KeyValueConfig{
		Bucket: BucketAttempts, Description: "Runs of events that were delivered more than once",
		MaxBytes: max(leastAttempts, cfg.MaxBytes/8), History: 1, TTL: attemptsTTL, LimitMarkerTTL: time.Minute, Replicas: cfg.Replicas, Storage: jetstream.FileStorage,
	}})
}

// streams are the configurations of all streams. Rollup, schedules and TTLs stay off where tenants
// publish: their headers could wipe or fill the stream (notes §1.4).
func streams(cfg Config, maxPayload int64) []jetstream.StreamConfig {
	maxMsg := int32(-1)
	switch {
	case maxPayload > 2*payloadHeadroom:
		maxMsg = int32(min(maxPayload-payloadHeadroom, 1<<30)) //nolint:gosec // bounded in this line
	case maxPayload > 0:
		maxMsg = int32(maxPayload * 3 / 4) //nolint:gosec // bounded by the case before
	}
	return []jetstream.StreamConfig{
		{
			Name: StreamEvents, Description: "Events to run", Subjects: []string{cfg.Prefix.AllEvents(), cfg.Prefix.Pin()},
			SubjectTransform: &jetstream.SubjectTransformConfig{Source: cfg.Prefix.AllEvents(), Destination: cfg.Prefix.Stored()},
			Retention:        jetstream.WorkQueuePolicy, Storage: jetstream.FileStorage, Replicas: cfg.Replicas,
			MaxBytes: cfg.MaxBytes, MaxMsgSize: maxMsg, Discard: jetstream.DiscardNew, Duplicates: cfg.Duplicates, AllowDirect: true,
		},
		bodiesStream(cfg, maxMsg),
		resultsStream(cfg),
		{
			Name: StreamDead, Description: "Events that failed for good", Subjects: []string{cfg.Prefix.AllDead()},
			Retention: jetstream.LimitsPolicy, Storage: jetstream.FileStorage, Replicas: cfg.Replicas,
			MaxAge: cfg.DeadLetterAge, MaxBytes: cfg.deadBytes(), Discard: jetstream.DiscardNew, // whose oldest go is for shared.go to say
			AllowDirect: true, AllowRollup: true, // an edit replaces a letter in one step
		},
		{
			Name: StreamParked, Description: "Events over their owner's limit", Subjects: []string{cfg.Prefix.AllParked()},
			Retention: jetstream.WorkQueuePolicy, Storage: jetstream.FileStorage, Replicas: cfg.Replicas,
			MaxBytes: cfg.MaxBytes, Discard: jetstream.DiscardNew, Duplicates: cfg.parkedWindow(), AllowDirect: true,
		},
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
		AckWait: cfg.AckWait, MaxDeliver: -1, MaxAckPending: maxAckPending, // as many replicas as the stream has, also when it gets more
	}
}

func laneName(lane int) string { return "lane-" + strconv.Itoa(lane) }
