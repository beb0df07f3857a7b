package resources

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/internal/lib/guard"
)

const (
	// codeConsumerStore is JetStream's error when it cannot write a consumer's files.
	codeConsumerStore = 10012
	// codeReplicasExceedStream is JetStream's error when the stream of a consumer does not have its copies yet.
	codeReplicasExceedStream = 10126
)

// Reconciler creates resources that are missing. Of those that exist it changes what the engine needs and what loses
// nothing ([Difference.Adds]), and keeps the rest. Many processes may do so at once.
type Reconciler struct {
	JS jetstream.JetStream
	// OnlyMissing leaves existing resources as they are. A process that repairs what was deleted while it runs must not
	// revert what processes with a newer configuration have changed.
	OnlyMissing bool
	// Apply changes everything that differs, also sizes, ages and copies. Only a person decides that, by 'pinwheel
	// resources apply'. It does not create what is missing.
	Apply bool
	// Grows says that the size of a resource is what it has grown to: it never differs.
	Grows bool
	// Log gets what was left alone, and what was updated.
	Log zerolog.Logger
}

// ImmutableError says that a resource differs in a way that JetStream cannot change in place.
type ImmutableError struct {
	Resource string
	Drift    []Difference // only those that cannot be changed
}

func (e *ImmutableError) Error() string {
	list := make([]string, len(e.Drift))
	for i, d := range e.Drift {
		list[i] = d.String()
	}
	return fmt.Sprintf("%s: %s; JetStream cannot change that in place: save its content and delete it; it is then created again",
		e.Resource, strings.Join(list, ", "))
}

// changes are the differences of an existing resource that are to be changed now. It logs those that stay. The error is
// an *ImmutableError.
func (r *Reconciler) changes(resource string, level int, drift []Difference) ([]Difference, error) {
	if level > Level {
		r.Log.Warn().Str("resource", resource).Int("level", level).Int("known", Level).
			Msg("created by a newer Pinwheel; this process leaves it as it is")
		return nil, nil
	}
	if r.OnlyMissing {
		return nil, nil
	}
	var immutable, now []Difference
	for _, d := range drift {
		switch {
		case d.immutable():
			immutable = append(immutable, d)
		case r.Grows && d.Field == "max_bytes":
		case r.Apply || d.Adds():
			now = append(now, d)
		default:
			r.Log.Warn().Str("resource", resource).Str("field", d.Field).Str("is", d.Have).Str("wanted", d.Want).
				Msg("differs from what this process would create, and stays as it is: 'pinwheel resources apply' changes it")
		}
	}
	if immutable != nil {
		return nil, &ImmutableError{resource, immutable}
	}
	return now, nil
}

func (r *Reconciler) updated(resource string, changes []Difference) {
	for _, d := range changes {
		r.Log.Info().Str("resource", resource).Str("field", d.Field).Str("from", d.Have).Str("to", d.Want).Msg("updated")
	}
}

// update changes the stream of a resource from have to target, as far as this Reconciler may.
func (r *Reconciler) update(ctx context.Context, resource string, have, target jetstream.StreamConfig,
	retired ...string) error {
	changes, err := r.changes(resource, levelOf(have.Metadata), drift(have, target))
	if err != nil || len(changes) == 0 {
		return err
	}
	next, err := with(have, target, changes, r.Apply)
	if err != nil {
		return err
	}
	next.Subjects = slices.DeleteFunc(next.Subjects, func(s string) bool { return slices.Contains(retired, s) })
	if _, err = r.JS.UpdateStream(ctx, next); err == nil {
		r.updated(resource, changes)
	}
	return err
}

// Stream creates a stream, or updates it. It does not update a stream that is correct already: each process that starts
// calls this, and an update costs the server and all consumers of the stream. An update also removes the retired
// subjects of earlier binaries: what is published there no longer reaches the stream.
func (r *Reconciler) Stream(ctx context.Context, want jetstream.StreamConfig, retired ...string) error {
	_, err := retry(ctx, r.JS.Conn(), func(ctx context.Context) (struct{}, error) {
		return struct{}{},
			r.stream(ctx, want, retired)
	})
	return err
}

func (r *Reconciler) stream(ctx context.Context, want jetstream.StreamConfig, retired []string) error {
	s, err := r.JS.Stream(ctx, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) && !r.Apply {
		if s, err = r.create(ctx, want); err == nil && s == nil {
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
	return r.update(ctx, "stream "+want.Name, have, completeStream(have, want), retired...)
}

// create creates a stream. If another process created it first with another configuration, the result is that stream.
func (r *Reconciler) create(ctx context.Context, want jetstream.StreamConfig) (jetstream.Stream, error) {
	want.Metadata = marked(want.Metadata)
	if want.Retention == jetstream.WorkQueuePolicy && !guard.StreamLife.Off() {
		want.FirstSeq = firstSequence(time.Now())
	}
	_, err := r.JS.CreateStream(ctx, want)
	if !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		return nil, err
	}
	s, err := r.JS.Stream(ctx, want.Name)
	if err != nil {
		return nil, fmt.Errorf("another process created the stream at the same time: %w", err)
	}
	return s, nil
}

// firstSequence is the first sequence of a work queue that is created now. A later stream of the same name begins
// behind all sequences of this one, unless this one gets a million messages a second for all its life. So a sequence
// never names two messages: an ack, a deletion or a key for an earlier stream of the name hits nothing in a later one.
// Sequences stay below 2^53, as JavaScript needs, until 2255.
func firstSequence(now time.Time) uint64 { return uint64(max(1, now.UnixMicro())) }

// Consumer creates a durable consumer, or updates it.
//
// In nats-server 2.15.2, a durable that is created while one of the same name is being deleted can lose its directory.
// It works, but cannot be updated and does not survive a restart. So a correct consumer is updated to what it is. If
// this fails, the consumer is deleted, and the next try creates it.
func (r *Reconciler) Consumer(ctx context.Context, stream string, want jetstream.ConsumerConfig) error {
	c, err := r.JS.Consumer(ctx, stream, want.Durable)
	if errors.Is(err, jetstream.ErrConsumerNotFound) && !r.Apply {
		want.Metadata = marked(want.Metadata)
		if _, err = r.JS.CreateConsumer(ctx, stream, want); !errors.Is(err, jetstream.ErrConsumerExists) {
			return err
		}
		c, err = r.JS.Consumer(ctx, stream, want.Durable) // another process created it at the same time
	}
	if err != nil {
		return err
	}
	resource, have := "consumer "+want.Durable+" of "+stream, c.CachedInfo().Config
	changes, err := r.changes(resource, levelOf(have.Metadata), ConsumerDrift(have, want))
	if err != nil {
		return err
	}
	target, err := with(have, completeConsumer(have, want), changes, r.Apply)
	if err != nil {
		return err
	}
	_, err = r.JS.UpdateConsumer(ctx, stream, target)
	var api *jetstream.APIError
	if errors.As(err, &api) && api.ErrorCode == codeReplicasExceedStream {
		r.Log.Warn().Str("consumer", want.Durable).Str("stream", stream).
			Msg("the stream does not have all its copies yet; the consumer stays as it is until a process starts later")
		return nil
	}
	if errors.As(err, &api) && api.ErrorCode == codeConsumerStore && strings.Contains(api.Description, "no such file") {
		return errors.Join(err, r.JS.DeleteConsumer(ctx, stream, want.Durable))
	}
	if err == nil {
		r.updated(resource, changes)
	}
	return err
}

// Bucket creates a KV bucket, or updates it.
func (r *Reconciler) Bucket(ctx context.Context, want jetstream.KeyValueConfig) (jetstream.KeyValue, error) {
	return retry(ctx, r.JS.Conn(), func(ctx context.Context) (jetstream.KeyValue, error) { return r.bucket(ctx, want) })
}

func (r *Reconciler) bucket(ctx context.Context, want jetstream.KeyValueConfig) (jetstream.KeyValue, error) {
	kv, err := r.JS.KeyValue(ctx, want.Bucket)
	if errors.Is(err, jetstream.ErrBucketNotFound) && !r.Apply {
		create := want
		create.Metadata = marked(want.Metadata)
		if kv, err = r.JS.CreateKeyValue(ctx, create); !errors.Is(err, jetstream.ErrBucketExists) {
			return kv, err
		}
		kv, err = r.JS.KeyValue(ctx, want.Bucket) // another process created it at the same time
	}
	if err != nil {
		return nil, err
	}
	info, err := streamOf(ctx, r.JS, BucketStream(want.Bucket))
	if err != nil {
		return nil, err
	}
	return kv, r.update(ctx, "bucket "+want.Bucket, info.Config, bucketTarget(info.Config, want))
}

// Objects creates an object store, or updates it.
func (r *Reconciler) Objects(ctx context.Context, want jetstream.ObjectStoreConfig) (jetstream.ObjectStore, error) {
	return retry(ctx, r.JS.Conn(), func(ctx context.Context) (jetstream.ObjectStore, error) {
		return r.objects(ctx,
			want)
	})
}

func (r *Reconciler) objects(ctx context.Context, want jetstream.ObjectStoreConfig) (jetstream.ObjectStore, error) {
	o, err := r.JS.ObjectStore(ctx, want.Bucket)
	if errors.Is(err, jetstream.ErrBucketNotFound) && !r.Apply {
		create := want
		create.Metadata = marked(want.Metadata)
		if o, err = r.JS.CreateObjectStore(ctx, create); !errors.Is(err, jetstream.ErrBucketExists) {
			return o, err
		}
		o, err = r.JS.ObjectStore(ctx, want.Bucket) // another process created it at the same time
	}
	if err != nil {
		return nil, err
	}
	info, err := streamOf(ctx, r.JS, ObjectsStream(want.Bucket))
	if err != nil {
		return nil, err
	}
	return o, r.update(ctx, "object store "+want.Bucket, info.Config, objectsTarget(info.Config, want))
}

func streamOf(ctx context.Context, js jetstream.JetStream, name string) (*jetstream.StreamInfo, error) {
	s, err := js.Stream(ctx, name)
	if err != nil {
		return nil, err
	}
	return s.CachedInfo(), nil
}
