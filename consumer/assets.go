package consumer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/events"
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
	// maxAckPending is over all processes; each process's Window is the real bound.
	maxAckPending = 1 << 17
	// codeWrongLastSequence is JetStream's answer to an expectation that is not met.
	codeWrongLastSequence = 10071
	// codeConsumerStore is JetStream's answer when it cannot write a consumer's files.
	codeConsumerStore = 10012
)

// CreateAssets creates what is missing in JetStream and updates what differs. Many processes may
// do it at once. maxPayload is the server's largest message in bytes. It tries a few times, from the
// start: creation races with other processes and deletions, and a server that has just started may
// leave a request without an answer.
func CreateAssets(ctx context.Context, js jetstream.JetStream, cfg Config, maxPayload int64) error {
	var err error
	for try := range 5 {
		if err = createAssets(ctx, time.Second<<try, js, cfg, maxPayload); err == nil || ctx.Err() != nil {
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

// createAssets tries once; each request may take as long as patience.
func createAssets(ctx context.Context, patience time.Duration, js jetstream.JetStream, cfg Config, maxPayload int64) error {
	step := func(what string, f func(context.Context) error) error {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		if err := f(ctx); err != nil {
			return fmt.Errorf("consumer: %s: %w", what, err)
		}
		return nil
	}
	for _, s := range streams(cfg, maxPayload) {
		if err := step("stream "+s.Name, func(ctx context.Context) error {
			return putStream(ctx, js, s)
		}); err != nil {
			return err
		}
	}
	if err := step("pin message", func(ctx context.Context) error { return putPin(ctx, js, cfg.Prefix) }); err != nil {
		return err
	}
	var lanes error // one that fails does not keep the others from working
	for lane := range events.Lanes {
		c := laneConsumer(cfg, lane)
		lanes = errors.Join(lanes, step("consumer "+c.Durable, func(ctx context.Context) error {
			return putConsumer(ctx, js, c)
		}))
	}
	if lanes != nil {
		return lanes
	}
	return step("bucket "+BucketAttempts, func(ctx context.Context) error {
		return putBucket(ctx, js, jetstream.KeyValueConfig{
			Bucket: BucketAttempts, Description: "Runs of events that were delivered more than once",
			History: 1, TTL: attemptsTTL, LimitMarkerTTL: time.Minute, Replicas: cfg.Replicas, Storage: jetstream.FileStorage,
		})
	})
}

// streams are the configurations of all streams. Rollup, schedules and TTLs stay off where tenants
// publish: their headers could wipe or fill the stream (notes §1.4).
func streams(cfg Config, maxPayload int64) []jetstream.StreamConfig {
	maxMsg := int32(-1)
	if maxPayload > 2*payloadHeadroom {
		maxMsg = int32(min(maxPayload-payloadHeadroom, 1<<30)) //nolint:gosec // bounded in this line
	}
	return []jetstream.StreamConfig{
		bodiesStream(cfg, maxMsg),
		{
			Name: StreamEvents, Description: "Events to run", Subjects: []string{cfg.Prefix.AllEvents(), cfg.Prefix.Pin()},
			SubjectTransform: &jetstream.SubjectTransformConfig{Source: cfg.Prefix.AllEvents(), Destination: cfg.Prefix.Stored()},
			Retention:        jetstream.WorkQueuePolicy, Storage: jetstream.FileStorage, Replicas: cfg.Replicas,
			MaxBytes: cfg.MaxBytes, MaxMsgSize: maxMsg, Discard: jetstream.DiscardNew, Duplicates: 2 * time.Minute, AllowDirect: true,
		},
		{
			Name: StreamDead, Description: "Events that failed for good", Subjects: []string{cfg.Prefix.AllDead()},
			Retention: jetstream.LimitsPolicy, Storage: jetstream.FileStorage, Replicas: cfg.Replicas,
			MaxAge: cfg.DeadLetterAge, AllowDirect: true,
		},
		{
			Name: StreamParked, Description: "Events over their owner's limit", Subjects: []string{cfg.Prefix.AllParked()},
			Retention: jetstream.WorkQueuePolicy, Storage: jetstream.FileStorage, Replicas: cfg.Replicas,
			MaxBytes: cfg.MaxBytes, Discard: jetstream.DiscardNew, Duplicates: 2 * time.Minute, AllowDirect: true,
		},
	}
}

// putStream makes a stream, or brings it to what it should be. One that is that already is left alone: every process that starts
// comes by here, and an update of a stream is work for the server and for all its consumers.
func putStream(ctx context.Context, js jetstream.JetStream, want jetstream.StreamConfig) error {
	if s, err := js.Stream(ctx, want.Name); err == nil && settled(s.CachedInfo().Config, want) {
		return nil
	}
	_, err := js.CreateOrUpdateStream(ctx, want)
	return err
}

// settled reports whether a stream has what is wanted of it. Of what is not set in want, the server has chosen something.
func settled(have, want jetstream.StreamConfig) bool {
	asked := have
	asked.Description, asked.Subjects, asked.SubjectTransform = want.Description, want.Subjects, want.SubjectTransform
	asked.Retention, asked.Storage, asked.Replicas, asked.Discard = want.Retention, want.Storage, want.Replicas, want.Discard
	asked.MaxAge, asked.AllowDirect = want.MaxAge, want.AllowDirect
	asked.MaxBytes = cmp.Or(want.MaxBytes, -1)
	asked.MaxMsgSize = cmp.Or(want.MaxMsgSize, -1)
	asked.Duplicates = cmp.Or(want.Duplicates, have.Duplicates)
	return reflect.DeepEqual(asked, have)
}

// putBucket does the same for a bucket.
func putBucket(ctx context.Context, js jetstream.JetStream, want jetstream.KeyValueConfig) error {
	if kv, err := js.KeyValue(ctx, want.Bucket); err == nil {
		if s, err := kv.Status(ctx); err == nil && s.History() == int64(want.History) && s.TTL() == want.TTL {
			if b, ok := s.(*jetstream.KeyValueBucketStatus); ok && b.StreamInfo().Config.Replicas == want.Replicas {
				return nil
			}
		}
	}
	_, err := js.CreateOrUpdateKeyValue(ctx, want)
	return err
}

func laneConsumer(cfg Config, lane int) jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Durable: laneName(lane), FilterSubject: cfg.Prefix.Lane(lane),
		AckPolicy: jetstream.AckExplicitPolicy, DeliverPolicy: jetstream.DeliverAllPolicy,
		AckWait: cfg.AckWait, MaxDeliver: -1, MaxAckPending: maxAckPending, Replicas: cfg.Replicas,
	}
}

func laneName(lane int) string { return "lane-" + strconv.Itoa(lane) }

// putConsumer creates or updates one. A durable that is made while its namesake is being deleted can lose
// its directory to the deletion (nats-server 2.15.2): it works, but cannot be updated and would not
// survive a restart. Such a one is deleted, so that the next try makes it whole.
func putConsumer(ctx context.Context, js jetstream.JetStream, c jetstream.ConsumerConfig) error {
	_, err := js.CreateOrUpdateConsumer(ctx, StreamEvents, c)
	var api *jetstream.APIError
	if errors.As(err, &api) && api.ErrorCode == codeConsumerStore && strings.Contains(api.Description, "no such file") {
		return errors.Join(err, js.DeleteConsumer(ctx, StreamEvents, c.Durable))
	}
	return err
}

// putPin puts the one message that keeps the event stream from being empty.
func putPin(ctx context.Context, js jetstream.JetStream, s events.Subjects) error {
	_, err := js.PublishMsg(ctx, &nats.Msg{Subject: s.Pin()}, jetstream.WithExpectLastSequencePerSubject(0), jetstream.WithRetryAttempts(0))
	var api *jetstream.APIError
	if errors.As(err, &api) && api.ErrorCode == codeWrongLastSequence {
		return nil
	}
	return err
}
