package bindings

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/resources"
)

// Data is the data of one owner, for people and tools. Workers use Bindings.
type Data struct {
	store
	kv *kv
}

// OpenData returns the data of an owner with this policy. It does not talk to NATS.
func OpenData(nc *nats.Conn, js jetstream.JetStream, cfg Config, owner string, p events.Policy) *Data {
	s := store{js, owner, resources.BucketStream(KVBucket(owner)), events.BindingKV, "namespace", ErrNoData}
	return &Data{s, newKV(backend{nc, js, cfg, func(string) events.Policy { return p }})}
}

// ErrNoData is the error when an owner has no keys and values: none was ever put.
var ErrNoData = errors.New("the owner has no KV data")

// Key is a key of a namespace.
type Key struct {
	Name       string          `json:"key"`
	Expiration int64           `json:"expiration,omitempty"` // seconds since 1970; 0 = never
	Metadata   json.RawMessage `json:"metadata,omitempty"`
}

// Value is the value of a key.
type Value struct {
	Data     []byte
	Metadata json.RawMessage // nil = none
}

// Keys lists the keys of a namespace that begin with prefix, sorted by bytes, in pages. It calls each for each key.
func (d *Data) Keys(ctx context.Context, namespace, prefix string, each func(Key) error) error {
	if err := d.exists(ctx); err != nil {
		return err
	}
	for cursor := ""; ; {
		a, err := d.call(ctx, d.kv.list, namespace, nil, prefix, "0", cursor)
		if err != nil {
			return err
		}
		for i := 1; i+2 < len(a.Texts); i += 3 {
			expires, _ := strconv.ParseInt(a.Texts[i+1], 10, 64) // "" = never
			if err := each(Key{a.Texts[i], expires, json.RawMessage(a.Texts[i+2])}); err != nil {
				return err
			}
		}
		if cursor = a.Texts[0]; cursor == "" {
			return nil
		}
	}
}

// Get returns the value of a key, or nil if the key is not there.
func (d *Data) Get(ctx context.Context, namespace, key string) (*Value, error) {
	if err := d.exists(ctx); err != nil {
		return nil, err
	}
	a, err := d.call(ctx, d.kv.get, namespace, nil, key)
	if err != nil || len(a.Texts) == 0 {
		return nil, err
	}
	return &Value{a.Body, json.RawMessage(a.Texts[0])}, nil
}

// Put stores the value of a key for ttl, which counts in seconds; 0 = without end.
func (d *Data) Put(ctx context.Context, namespace, key string, v Value, ttl time.Duration) error {
	seconds := ""
	if ttl != 0 {
		seconds = strconv.FormatInt(int64(ttl/time.Second), 10)
	}
	_, err := d.call(ctx, d.kv.put, namespace, v.Data, key, seconds, "", string(v.Metadata))
	return err
}

// Delete removes a key. It is no error if the key is not there.
func (d *Data) Delete(ctx context.Context, namespace, key string) error {
	if err := d.exists(ctx); err != nil {
		return err
	}
	_, err := d.call(ctx, d.kv.remove, namespace, nil, key)
	return err
}

// Stored is what an owner has stored in one stream.
type Stored struct {
	Stream string `json:"stream"`
	Bytes  uint64 `json:"bytes"`
}

// Streams are the streams with data of the owner that exist.
func (d *Data) Streams(ctx context.Context) (list []Stored, err error) {
	for _, name := range streamsOf(d.owner) {
		s, err := d.js.Stream(ctx, name)
		switch {
		case errors.Is(err, jetstream.ErrStreamNotFound):
		case err != nil:
			return nil, fmt.Errorf("stream %s: %w", name, err)
		default:
			list = append(list, Stored{name, s.CachedInfo().State.Bytes})
		}
	}
	return list, nil
}

// Remove removes everything that the owner's workers have stored by bindings. A worker that still runs can store again.
func (d *Data) Remove(ctx context.Context) error {
	for _, name := range streamsOf(d.owner) {
		if err := d.js.DeleteStream(ctx, name); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			return fmt.Errorf("remove stream %s: %w", name, err)
		}
	}
	return nil
}

func streamsOf(owner string) []string {
	return []string{resources.BucketStream(KVBucket(owner)), resources.ObjectsStream(ObjectsBucket(owner)), resources.BucketStream(CacheBucket(owner))}
}

// store is what an owner has stored by the bindings of one kind.
type store struct {
	js     jetstream.JetStream
	owner  string
	stream string
	kind   events.BindingKind
	noun   string // what a name of this kind is one of
	none   error  // nothing was ever put
}

// exists returns none if there is no stream: reading must not create one.
func (s *store) exists(ctx context.Context) error {
	_, err := s.js.Stream(ctx, s.stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return s.none
	}
	return err
}

// call calls a method of the binding to name.
func (s *store) call(ctx context.Context, m method, name string, body []byte, texts ...string) (lifecycle.Answer, error) {
	if err := events.CheckName(s.noun, name); err != nil {
		return lifecycle.Answer{}, err
	}
	c := &lifecycle.Call{
		Owner: s.owner, Binding: events.Binding{Kind: s.kind, Value: name}, Texts: texts, Body: body,
		Wrote: &atomic.Bool{}, Hold: func(int) error { return nil },
	}
	c.Wrote.Store(true) // people read the newest
	return m(ctx, c)
}
