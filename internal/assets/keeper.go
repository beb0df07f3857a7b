package assets

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/internal/guard"
)

const (
	// codeConsumerStore is JetStream's answer when it cannot write a consumer's files.
	codeConsumerStore = 10012
	// codeReplicasExceedStream is its answer when the stream of a consumer has not got its copies yet.
	codeReplicasExceedStream = 10126
)

// Keeper makes assets and brings them to what is wanted. Many processes may do so at once.
type Keeper struct {
	JS jetstream.JetStream
	// OnlyMissing leaves what is there as it is. A process that mends what was deleted under it must not
	// take back what processes with a newer configuration have changed.
	OnlyMissing bool
	// Log is told of what was left alone because a newer binary made it, and of what was brought forward.
	Log zerolog.Logger
}

// FrozenError says that an asset differs in a way that JetStream cannot change in place.
type FrozenError struct {
	Asset string
	Drift []Difference // those that cannot be changed
}

func (e *FrozenError) Error() string {
	list := make([]string, len(e.Drift))
	for i, d := range e.Drift {
		list[i] = d.String()
	}
	return fmt.Sprintf("%s: %s; JetStream cannot change that in place: save what is in it, delete it, and it is made anew", e.Asset, strings.Join(list, ", "))
}

// leave reports whether an asset that exists stays as it is; otherwise its drift is to be mended. The error is a *FrozenError.
func (k *Keeper) leave(asset string, level int, drift []Difference) (bool, error) {
	if level > Level {
		k.Log.Warn().Str("asset", asset).Int("level", level).Int("known", Level).
			Msg("made by a newer Pinwheel; this process leaves it as it is")
		return true, nil
	}
	if k.OnlyMissing || len(drift) == 0 {
		return true, nil
	}
	var frozen []Difference
	for _, d := range drift {
		if d.frozen() {
			frozen = append(frozen, d)
		}
	}
	if frozen != nil {
		return false, &FrozenError{asset, frozen}
	}
	for _, d := range drift {
		k.Log.Info().Str("asset", asset).Str("field", d.Field).Str("from", d.Have).Str("to", d.Want).Msg("brought forward")
	}
	return false, nil
}

// Stream makes a stream, or brings it to what it should be. One that is that already is left alone: every process that starts
// comes by here, and an update of a stream is work for the server and for all its consumers.
func (k *Keeper) Stream(ctx context.Context, want jetstream.StreamConfig) error {
	s, err := k.JS.Stream(ctx, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		if s, err = k.create(ctx, want); err == nil && s == nil {
			return nil
		}
	}
	if err != nil {
		return err
	}
	have := s.CachedInfo().Config
	if err := samePrefix(have, want); err != nil {
		return err
	}
	if left, err := k.leave("stream "+want.Name, levelOf(have.Metadata), StreamDrift(have, want)); left || err != nil {
		return err
	}
	_, err = k.JS.UpdateStream(ctx, completeStream(have, want))
	return err
}

// create makes a stream. When another process was here first, and has chosen otherwise, it returns what that has made.
func (k *Keeper) create(ctx context.Context, want jetstream.StreamConfig) (jetstream.Stream, error) {
	want.Metadata = marked(want.Metadata)
	if want.Retention == jetstream.WorkQueuePolicy && !guard.StreamLife.Off() {
		want.FirstSeq = firstSequence(time.Now())
	}
	_, err := k.JS.CreateStream(ctx, want)
	if !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		return nil, err
	}
	s, err := k.JS.Stream(ctx, want.Name)
	if err != nil {
		return nil, fmt.Errorf("stream was made by another process meanwhile: %w", err)
	}
	return s, nil
}

// firstSequence is where a work queue begins that is made now. One that is made under its name later begins behind all that this one will have
// had, unless it gets a million messages a second for all its life. So its sequences name no other message, ever: an ack, a deletion or a key
// that was meant for an earlier stream of the name hits nothing of this one. They are below 2^53, as JavaScript needs it, until 2255.
func firstSequence(now time.Time) uint64 { return uint64(max(1, now.UnixMicro())) } //nolint:gosec // never negative

// Consumer makes a durable consumer, or brings it to what it should be. A durable that is made while its namesake is being deleted
// can lose its directory to the deletion (nats-server 2.15.2): it works, but cannot be updated and would not
// survive a restart. So one that is as it should be is updated to what it is, and one for which that fails is deleted: the next
// try makes it whole.
func (k *Keeper) Consumer(ctx context.Context, stream string, want jetstream.ConsumerConfig) error {
	target := want
	target.Metadata = marked(want.Metadata)
	c, err := k.JS.Consumer(ctx, stream, want.Durable)
	switch {
	case err == nil:
		have := c.CachedInfo().Config
		left, err := k.leave("consumer "+want.Durable+" of "+stream, levelOf(have.Metadata), ConsumerDrift(have, want))
		if err != nil {
			return err
		}
		if left {
			target = have
		} else {
			target = completeConsumer(have, want)
		}
	case !errors.Is(err, jetstream.ErrConsumerNotFound):
		return err
	}
	_, err = k.JS.CreateOrUpdateConsumer(ctx, stream, target)
	var api *jetstream.APIError
	if errors.As(err, &api) && api.ErrorCode == codeReplicasExceedStream && c != nil {
		k.Log.Warn().Str("consumer", want.Durable).Str("stream", stream).Msg("the stream is still getting more copies; the consumer stays as it is until a process starts after that")
		return nil
	}
	if errors.As(err, &api) && api.ErrorCode == codeConsumerStore && strings.Contains(api.Description, "no such file") {
		return errors.Join(err, k.JS.DeleteConsumer(ctx, stream, want.Durable))
	}
	return err
}

// Bucket makes a KV bucket, or brings it to what it should be.
func (k *Keeper) Bucket(ctx context.Context, want jetstream.KeyValueConfig) (jetstream.KeyValue, error) {
	return patiently(ctx, func(ctx context.Context) (jetstream.KeyValue, error) { return k.bucket(ctx, want) })
}

func (k *Keeper) bucket(ctx context.Context, want jetstream.KeyValueConfig) (jetstream.KeyValue, error) {
	kv, err := k.JS.KeyValue(ctx, want.Bucket)
	if err != nil && !errors.Is(err, jetstream.ErrBucketNotFound) {
		return nil, err
	}
	want.Metadata = marked(want.Metadata)
	if err == nil {
		info, err := streamOf(ctx, k.JS, BucketStream(want.Bucket))
		if err != nil {
			return nil, err
		}
		if left, err := k.leave("bucket "+want.Bucket, levelOf(info.Config.Metadata), BucketDrift(info.Config, want)); left || err != nil {
			return kv, err
		}
		want.Placement, want.RePublish = info.Config.Placement, info.Config.RePublish
		want.Compression = info.Config.Compression != jetstream.NoCompression
	}
	return k.JS.CreateOrUpdateKeyValue(ctx, want)
}

// Objects makes an object store, or brings it to what it should be.
func (k *Keeper) Objects(ctx context.Context, want jetstream.ObjectStoreConfig) (jetstream.ObjectStore, error) {
	return patiently(ctx, func(ctx context.Context) (jetstream.ObjectStore, error) { return k.objects(ctx, want) })
}

func (k *Keeper) objects(ctx context.Context, want jetstream.ObjectStoreConfig) (jetstream.ObjectStore, error) {
	o, err := k.JS.ObjectStore(ctx, want.Bucket)
	if err != nil && !errors.Is(err, jetstream.ErrBucketNotFound) {
		return nil, err
	}
	want.Metadata = marked(want.Metadata)
	if err == nil {
		info, err := streamOf(ctx, k.JS, ObjectsStream(want.Bucket))
		if err != nil {
			return nil, err
		}
		if left, err := k.leave("object store "+want.Bucket, levelOf(info.Config.Metadata), ObjectsDrift(info.Config, want)); left || err != nil {
			return o, err
		}
		want.Placement = info.Config.Placement
		want.Compression = info.Config.Compression != jetstream.NoCompression
	}
	return k.JS.CreateOrUpdateObjectStore(ctx, want)
}

func streamOf(ctx context.Context, js jetstream.JetStream, name string) (*jetstream.StreamInfo, error) {
	s, err := js.Stream(ctx, name)
	if err != nil {
		return nil, err
	}
	return s.CachedInfo(), nil
}
