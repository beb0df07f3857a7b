package assets

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// Asset is one thing to have in JetStream: exactly one of the fields is set, but for Consumer, which goes with the name of its
// stream.
type Asset struct {
	Stream   *jetstream.StreamConfig
	Consumer *jetstream.ConsumerConfig
	Of       string // stream of the consumer
	Bucket   *jetstream.KeyValueConfig
	Objects  *jetstream.ObjectStoreConfig
}

// String is the kind and the name, for people.
func (a Asset) String() string {
	switch {
	case a.Stream != nil:
		return "stream " + a.Stream.Name
	case a.Consumer != nil:
		return "consumer " + a.Consumer.Durable + " of " + a.Of
	case a.Bucket != nil:
		return "bucket " + a.Bucket.Bucket
	case a.Objects != nil:
		return "object store " + a.Objects.Bucket
	}
	return "nothing"
}

// StreamName is the stream that holds the asset.
func (a Asset) StreamName() string {
	switch {
	case a.Stream != nil:
		return a.Stream.Name
	case a.Bucket != nil:
		return BucketStream(a.Bucket.Bucket)
	case a.Objects != nil:
		return ObjectsStream(a.Objects.Bucket)
	}
	return a.Of
}

// Make makes an asset, or brings it to what it should be.
func (k *Keeper) Make(ctx context.Context, a Asset) (err error) {
	switch {
	case a.Stream != nil:
		err = k.Stream(ctx, *a.Stream)
	case a.Consumer != nil:
		err = k.Consumer(ctx, a.Of, *a.Consumer)
	case a.Bucket != nil:
		_, err = k.Bucket(ctx, *a.Bucket)
	case a.Objects != nil:
		_, err = k.Objects(ctx, *a.Objects)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", a, err)
	}
	return nil
}

// Finding is what there is of an asset.
type Finding struct {
	Missing bool
	Level   int // of who made it; 0: from before there were levels
	Drift   []Difference
	Foreign error                   // a *PrefixError, of a stream that belongs to a fleet of another prefix
	Stream  *jetstream.StreamInfo   // of the asset's stream, unless it is missing
	Info    *jetstream.ConsumerInfo // of a consumer
}

// Newer reports whether a newer binary made the asset: then its drift is as it should be.
func (f Finding) Newer() bool { return f.Level > Level }

// Look compares an asset with what is there. It changes nothing.
func Look(ctx context.Context, js jetstream.JetStream, a Asset) (f Finding, err error) {
	if a.Consumer != nil {
		c, err := js.Consumer(ctx, a.Of, a.Consumer.Durable)
		if errors.Is(err, jetstream.ErrConsumerNotFound) || errors.Is(err, jetstream.ErrStreamNotFound) {
			return Finding{Missing: true}, nil
		}
		if err != nil {
			return f, fmt.Errorf("%s: %w", a, err)
		}
		f.Info = c.CachedInfo()
		f.Level, f.Drift = levelOf(f.Info.Config.Metadata), ConsumerDrift(f.Info.Config, *a.Consumer)
		return f, nil
	}
	f.Stream, err = streamOf(ctx, js, a.StreamName())
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return Finding{Missing: true}, nil
	}
	if err != nil {
		return f, fmt.Errorf("%s: %w", a, err)
	}
	have := f.Stream.Config
	f.Level = levelOf(have.Metadata)
	switch {
	case a.Stream != nil:
		f.Drift, f.Foreign = StreamDrift(have, *a.Stream), samePrefix(have, *a.Stream)
	case a.Bucket != nil:
		f.Drift = BucketDrift(have, *a.Bucket)
	case a.Objects != nil:
		f.Drift = ObjectsDrift(have, *a.Objects)
	}
	return f, nil
}

// keepsUp is how many entries a copy may be behind that keeps up: the one that is not needed for a majority always is a few behind
// while there is traffic.
const keepsUp = 256

// Behind reports whether a copy that is not offline must catch up before another server may go.
func Behind(p *jetstream.PeerInfo) bool { return !p.Current && (p.Lag == 0 || p.Lag > keepsUp) }
