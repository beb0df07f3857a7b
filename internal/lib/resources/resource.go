package resources

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// Resource is what one stream, consumer, bucket or object store should be. Exactly one of Stream,
// Consumer, Bucket and Objects is set; a Consumer also has Of.
type Resource struct {
	Stream   *jetstream.StreamConfig
	Retired  []string // subjects that Stream had in earlier binaries; what is stored under them stays
	Consumer *jetstream.ConsumerConfig
	Of       string // the stream of the consumer
	Bucket   *jetstream.KeyValueConfig
	Objects  *jetstream.ObjectStoreConfig
}

// String is the kind and the name, for people.
func (r Resource) String() string {
	switch {
	case r.Stream != nil:
		return "stream " + r.Stream.Name
	case r.Consumer != nil:
		return "consumer " + r.Consumer.Durable + " of " + r.Of
	case r.Bucket != nil:
		return "bucket " + r.Bucket.Bucket
	case r.Objects != nil:
		return "object store " + r.Objects.Bucket
	}
	return "nothing"
}

// StreamName is the stream that holds the resource.
func (r Resource) StreamName() string {
	switch {
	case r.Stream != nil:
		return r.Stream.Name
	case r.Bucket != nil:
		return BucketStream(r.Bucket.Bucket)
	case r.Objects != nil:
		return ObjectsStream(r.Objects.Bucket)
	}
	return r.Of
}

// Reconcile creates a resource, or updates it.
func (r *Reconciler) Reconcile(ctx context.Context, want Resource) (err error) {
	switch {
	case want.Stream != nil:
		err = r.Stream(ctx, *want.Stream, want.Retired...)
	case want.Consumer != nil:
		err = r.Consumer(ctx, want.Of, *want.Consumer)
	case want.Bucket != nil:
		_, err = r.Bucket(ctx, *want.Bucket)
	case want.Objects != nil:
		_, err = r.Objects(ctx, *want.Objects)
	}
	if err != nil {
		return &Error{want, err}
	}
	return nil
}

// Error is why a resource could not be created or updated.
type Error struct {
	Resource Resource
	Err      error
}

func (e *Error) Error() string { return e.Resource.String() + ": " + e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// Finding is what a server has of a resource.
type Finding struct {
	Missing bool
	Level   int // of the binary that created it; 0 = it had no levels yet
	Drift   []Difference
	Foreign error                   // a *PrefixError, when the stream belongs to a fleet with another prefix
	Stream  *jetstream.StreamInfo   // of the resource's stream, unless it is missing
	Info    *jetstream.ConsumerInfo // of a consumer
}

// Newer reports whether a newer binary created the resource. Then its drift is correct.
func (f Finding) Newer() bool { return f.Level > Level }

// Look compares a resource with what the server has. It changes nothing. It asks again when a cluster that has no
// leader at the moment does not answer.
func Look(ctx context.Context, js jetstream.JetStream, want Resource) (f Finding, err error) {
	return retry(ctx, js.Conn(), func(ctx context.Context) (Finding, error) { return look(ctx, js, want) })
}

func look(ctx context.Context, js jetstream.JetStream, want Resource) (f Finding, err error) {
	if want.Consumer != nil {
		c, err := js.Consumer(ctx, want.Of, want.Consumer.Durable)
		if errors.Is(err, jetstream.ErrConsumerNotFound) || errors.Is(err, jetstream.ErrStreamNotFound) {
			return Finding{Missing: true}, nil
		}
		if err != nil {
			return f, fmt.Errorf("%s: %w", want, err)
		}
		f.Info = c.CachedInfo()
		f.Level, f.Drift = levelOf(f.Info.Config.Metadata), f.Against(want)
		return f, nil
	}
	f.Stream, err = streamOf(ctx, js, want.StreamName())
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return Finding{Missing: true}, nil
	}
	if err != nil {
		return f, fmt.Errorf("%s: %w", want, err)
	}
	have := f.Stream.Config
	f.Level, f.Drift = levelOf(have.Metadata), f.Against(want)
	if want.Stream != nil {
		f.Foreign = samePrefix(have, *want.Stream)
	}
	return f, nil
}

// Against compares what the server has with what somebody else wants of the same resource. The resource is not missing.
func (f Finding) Against(want Resource) []Difference {
	switch {
	case want.Consumer != nil:
		return ConsumerDrift(f.Info.Config, *want.Consumer)
	case want.Stream != nil:
		return StreamDrift(f.Stream.Config, *want.Stream)
	case want.Bucket != nil:
		return BucketDrift(f.Stream.Config, *want.Bucket)
	case want.Objects != nil:
		return ObjectsDrift(f.Stream.Config, *want.Objects)
	}
	return nil
}

// keepsUp is the number of entries by which a copy that keeps up may be behind. Under traffic, the copy that is not
// needed for a majority is always a few entries behind.
const keepsUp = 256

// Behind reports whether a copy that is not offline must catch up before another server may stop.
func Behind(p *jetstream.PeerInfo) bool { return !p.Current && (p.Lag == 0 || p.Lag > keepsUp) }
