package bindings

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
)

// nats-server reserves the bytes that a stream may have, also while it is empty. So the stream of an owner begins with
// few, and gets more when it is full, up to the owner's bound: the server still keeps that bound.
const (
	// firstBytes is what the stream of an owner may have at first.
	firstBytes = 1 << 20
	// messageRoom is what a stream must have free beyond subject, headers and body of a message.
	messageRoom = 4 << 10
	// cacheLook is after how many bytes a process looks whether a cache is half full.
	cacheLook = firstBytes / 4
)

// reservations tells of streams that got no room. Its zero value tells nobody.
type reservations struct {
	refused prometheus.Counter
	seldom  rate.Sometimes
}

func newReservations() *reservations {
	return &reservations{
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "pinwheel_binding_storage_refused_total", Help: "Times that JetStream had no bytes left to reserve for the data of an owner.",
		}),
		seldom: rate.Sometimes{First: 1, Interval: time.Minute},
	}
}

// told notes err if it says that nothing is left to reserve. It returns err.
func (b backend) told(stream string, err error) error {
	var api *jetstream.APIError
	if b.reservations != nil && errors.As(err, &api) && api.ErrorCode == codeNoStorage {
		b.reservations.refused.Inc()
		b.reservations.seldom.Do(func() {
			b.cfg.Log.Error().Str("stream", stream).
				Str("do", "give JetStream more storage (max_file_store, or the limit of the account), or release what is not used: 'pinwheel resources apply'").
				Msg("JetStream has no bytes left to reserve for an owner's data: the owner's calls fail with 503")
		})
	}
	return err
}

// publish stores a message in the stream of an owner. A stream that is full gets more bytes, at most most.
func (b backend) publish(ctx context.Context, stream string, most int64, m *nats.Msg,
	opts ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	for {
		ack, err := b.js.PublishMsg(ctx, m, opts...)
		if !resources.IsFull(err) {
			return ack, err
		}
		grew, failed := b.grow(ctx, stream, most, int64(m.Size()))
		if failed != nil {
			return nil, failed
		}
		if !grew {
			return nil, err
		}
	}
}

// grow doubles the bytes that a stream may have, or gives it as many as a message of that size needs, but not more than
// most. It returns false when the stream has most already. When several processes grow a stream at once, the last one
// may make it smaller than the others. That loses nothing: such a stream refuses messages, and grows again.
func (b backend) grow(ctx context.Context, stream string, most, size int64) (bool, error) {
	s, err := b.js.Stream(ctx, stream)
	if err != nil {
		return false, err
	}
	info := s.CachedInfo()
	c, used := info.Config, int64(info.State.Bytes)
	next := min(most, max(2*c.MaxBytes, used+size+messageRoom))
	if c.MaxBytes <= 0 || next <= c.MaxBytes {
		// Another process may just have made room.
		return c.MaxBytes > 0 && used+size+messageRoom < c.MaxBytes, nil
	}
	c.MaxBytes = next
	_, err = b.js.UpdateStream(ctx, c)
	return err == nil, b.told(stream, err)
}

// bound lowers what a stream may have to what the owner's policy says; 0 = it says nothing. What is stored stays,
// except in a cache.
func (b backend) bound(ctx context.Context, stream string, policy int) error {
	if policy == 0 || b.cfg.OnlyMissing {
		return nil
	}
	s, err := b.js.Stream(ctx, stream)
	if err != nil {
		return err
	}
	c := s.CachedInfo().Config
	if c.MaxBytes <= int64(policy) {
		return nil
	}
	b.cfg.Log.Info().Str("stream", stream).Int64("from", c.MaxBytes).Int("to", policy).
		Msg("the owner's policy lowers what the stream may have")
	c.MaxBytes = int64(policy)
	_, err = b.js.UpdateStream(ctx, c)
	return err
}

// Unused are the streams of owners that have at least twice the bytes that they need, or another number of copies, as
// they should be: twice what they store.
func Unused(ctx context.Context, js jetstream.JetStream, replicas int) (list []resources.Resource, err error) {
	infos := js.ListStreams(ctx)
	for info := range infos.Info() {
		if !ofOwner(info.Config.Name) {
			continue
		}
		want := info.Config
		want.Replicas = replicas
		if needs := max(firstBytes, 2*int64(info.State.Bytes)); want.MaxBytes > 2*needs {
			want.MaxBytes = needs
		}
		list = append(list, resources.Resource{Stream: &want})
	}
	return list, infos.Err()
}

// ofOwner reports whether a stream has the data of an owner.
func ofOwner(stream string) bool {
	return slices.ContainsFunc(streamsOf(""), func(prefix string) bool { return strings.HasPrefix(stream, prefix) })
}

// cached is the open stream of what an owner caches. It is never full: its oldest messages go. So a process looks at it
// now and then.
type cached struct {
	name  string
	added atomic.Int64 // bytes since this process has looked
}

// grew notes that this process stored size bytes, and lets the stream grow when it is half full. An error leaves it as
// it is.
func (k *cache) grew(ctx context.Context, s *cached, most int64, size int) {
	if s.added.Add(int64(size)) < cacheLook {
		return
	}
	s.added.Store(0)
	stream, err := k.js.Stream(ctx, s.name)
	if err != nil {
		return
	}
	if info := stream.CachedInfo(); int64(info.State.Bytes) > info.Config.MaxBytes/2 {
		_, _ = k.grow(ctx, s.name, most, 0)
	}
}
