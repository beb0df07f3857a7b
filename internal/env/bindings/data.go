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
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
)

// Data is the data of one owner, for people and tools. Workers use Bindings.
type Data struct {
	store
	kv *kv
}

// OpenData returns the data of an owner with this policy. It does not talk to NATS.
func OpenData(nc *nats.Conn, js jetstream.JetStream, cfg Config, owner string, p workers.Policy) *Data {
	return dataOf(newKV(backend{nc, js, cfg, func(string) workers.Policy { return p }, nil}), owner)
}

func dataOf(k *kv, owner string) *Data {
	return &Data{store{
		js: k.js, owner: owner, stream: resources.BucketStream(KVBucket(owner)), kind: workers.BindingKV, noun: "namespace",
		none: ErrNoData, method: k.method,
	}, k}
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
		a, err := d.call(ctx, "list", namespace, nil, prefix, "0", cursor)
		if err != nil {
			return err
		}
		for _, k := range keysOf(a) {
			if err := each(k); err != nil {
				return err
			}
		}
		if cursor = a.Texts[0]; cursor == "" {
			return nil
		}
	}
}

// keysOf are the keys in the answer of a list.
func keysOf(a lifecycle.Answer) (keys []Key) {
	for i := 1; i+2 < len(a.Texts); i += 3 {
		expires, _ := strconv.ParseInt(a.Texts[i+1], 10, 64) // "" = never
		keys = append(keys, Key{a.Texts[i], expires, json.RawMessage(a.Texts[i+2])})
	}
	return keys
}

// Get returns the value of a key, or nil if the key is not there.
func (d *Data) Get(ctx context.Context, namespace, key string) (*Value, error) {
	if err := d.exists(ctx); err != nil {
		return nil, err
	}
	a, err := d.call(ctx, "get", namespace, nil, key)
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
	_, err := d.call(ctx, "put", namespace, v.Data, key, seconds, "", string(v.Metadata))
	return err
}

// Delete removes a key. It is no error if the key is not there.
func (d *Data) Delete(ctx context.Context, namespace, key string) error {
	if err := d.exists(ctx); err != nil {
		return err
	}
	_, err := d.call(ctx, "delete", namespace, nil, key)
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
	return []string{resources.BucketStream(KVBucket(owner)), resources.ObjectsStream(ObjectsBucket(owner)),
		resources.BucketStream(CacheBucket(owner))}
}

// store is what an owner has stored by the bindings of one kind.
type store struct {
	js     jetstream.JetStream
	owner  string
	stream string
	kind   workers.BindingKind
	noun   string // what a name of this kind is one of
	none   error  // nothing was ever put
	method func(name string) method
	// limits are those of the owner in this process, and hold is told of the bytes that a call takes. Both may be nil.
	limits *Bindings
	hold   func(bytes int) error
}

// exists returns none if there is no stream: reading must not create one.
func (s *store) exists(ctx context.Context) error {
	_, err := s.js.Stream(ctx, s.stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return s.none
	}
	if err != nil {
		_, err = inWords(err, "")
	}
	return err
}

// call calls a method of the binding to name.
func (s *store) call(ctx context.Context, method, name string, body []byte, texts ...string) (lifecycle.Answer, error) {
	if err := events.CheckName(s.noun, name); err != nil {
		return lifecycle.Answer{}, err
	}
	c := &lifecycle.Call{
		Owner: s.owner, Method: method, Binding: workers.Binding{Kind: s.kind, Value: name}, Texts: texts, Body: body,
		Wrote: &atomic.Bool{}, Hold: s.hold,
	}
	c.Wrote.Store(true) // people read the newest
	if c.Hold == nil {
		c.Hold = func(int) error { return nil }
	}
	if s.limits != nil {
		return s.limits.admitted(ctx, s.method(method), c)
	}
	return s.method(method)(ctx, c)
}
