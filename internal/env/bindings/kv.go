package bindings

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
	"github.com/pinwheel-run/pinwheel/internal/lib/stored"
)

// MaxValue is the longest value of a key, bytes.
const MaxValue = 512 << 10 // js/bindings/kv.js

const (
	maxMetadata = 1024 // bytes of JSON
	maxMany     = 100  // keys of one get()

	headerMetadata = "Pinwheel-Metadata"   // JSON
	headerExpires  = "Pinwheel-Expiration" // seconds since 1970
)

// kv is Cloudflare's KVNamespace on one bucket for each owner. The messages of its errors are Cloudflare's.
type kv struct {
	backend
	buckets opened[*bucket]
	lists   *lists
}

func newKV(b backend) *kv {
	k := &kv{backend: b, lists: &lists{}}
	k.buckets.create = k.createBucket
	k.buckets.bound = func(owner string) int { return k.policy(owner).KVBytes }
	return k
}

func (k *kv) method(name string) method {
	switch name {
	case "get":
		return k.get
	case "getMany":
		return k.getMany
	case "put":
		return k.put
	case "delete":
		return k.remove
	case "list":
		return k.list
	}
	return nil
}

// base is the beginning of the subjects of a namespace.
func base(c *lifecycle.Call) string {
	return "$KV." + KVBucket(c.Owner) + "." + c.Binding.Value + "."
}

func streamOf(c *lifecycle.Call) string { return resources.BucketStream(KVBucket(c.Owner)) }

// open returns the owner's bucket.
func (k *kv) open(ctx context.Context, c *lifecycle.Call, texts int) (*bucket, error) {
	if len(c.Texts) != texts {
		return nil, fmt.Errorf("400 %d arguments, not %d", len(c.Texts), texts)
	}
	return k.buckets.of(ctx, c.Owner)
}

func checkKey(key string) error {
	switch {
	case key == "" || key == "." || key == "..":
		return fmt.Errorf("400 %q is not allowed as a key name", key)
	case len(key) > maxKey:
		//nolint:staticcheck // Cloudflare's words
		return fmt.Errorf("414 UTF-8 encoded length of %d exceeds key length limit of %d.", len(key), maxKey)
	}
	return nil
}

// entry is a key's value. A nil entry is a key that is not there.
type entry struct {
	value    []byte
	metadata string // JSON, "" = none
}

// entryOf returns what a stored message says, or nil if it is not, or no longer, the value of a key.
func entryOf(h nats.Header, value []byte) *entry {
	if h.Get("KV-Operation") != "" || h.Get(jetstream.MarkerReasonHeader) != "" {
		return nil
	}
	if at, err := strconv.ParseInt(h.Get(headerExpires), 10, 64); err == nil && at <= time.Now().Unix() {
		return nil // JetStream removes it within a second
	}
	return &entry{value, metadataOf(h)}
}

// metadataOf returns the metadata of a message if it is JSON: not only Pinwheel may have written it.
func metadataOf(h nats.Header) string {
	if text := h.Get(headerMetadata); text != "" && json.Valid([]byte(text)) {
		return text
	}
	return ""
}

// read reads one key. A run that has written reads from the leader: the other copies of the stream may be behind.
func (k *kv) read(ctx context.Context, c *lifecycle.Call, b *bucket, key string) (*entry, error) {
	subject := base(c) + encodeKey(key)
	var h nats.Header
	var data []byte
	var err error
	if b.copies > 1 && c.Wrote.Load() {
		var m *stored.Message
		if m, err = stored.Get(ctx, k.nc, streamOf(c), stored.Request{Last: subject}); err == nil {
			h, data = m.Header, m.Data
		}
	} else {
		h, data, err = stored.Last(ctx, k.nc, streamOf(c), subject)
	}
	switch {
	case errors.Is(err, stored.ErrNone):
		return nil, nil
	case err != nil:
		return nil, k.failed(c, err)
	}
	if err := c.Hold(len(data)); err != nil {
		return nil, fmt.Errorf("429 %w", err)
	}
	return entryOf(h, data), nil
}

// failed is err for the author of a handler.
func (k *kv) failed(c *lifecycle.Call, err error) error {
	gone, err := inWords(err, "kvBytes")
	if gone {
		k.buckets.forget(c.Owner)
	}
	return err
}

// get answers with the metadata and the value; with no texts if the key is not there.
func (k *kv) get(ctx context.Context, c *lifecycle.Call) (lifecycle.Answer, error) {
	b, err := k.open(ctx, c, 1)
	if err == nil {
		err = checkKey(c.Texts[0])
	}
	if err != nil {
		return lifecycle.Answer{}, err
	}
	e, err := k.read(ctx, c, b, c.Texts[0])
	if e == nil || err != nil {
		return lifecycle.Answer{}, err
	}
	return lifecycle.Answer{Texts: []string{e.metadata}, Body: e.value}, nil
}

// getMany answers with the size of the value ("" for a key that is not there) and the metadata of each key, and with
// all values in a row.
func (k *kv) getMany(ctx context.Context, c *lifecycle.Call) (lifecycle.Answer, error) {
	b, err := k.open(ctx, c, len(c.Texts))
	if err != nil {
		return lifecycle.Answer{}, err
	}
	if n := len(c.Texts); n > maxMany {
		return lifecycle.Answer{}, fmt.Errorf("400 You can request a maximum of %d keys", maxMany)
	}
	for _, key := range c.Texts {
		if err := checkKey(key); err != nil {
			return lifecycle.Answer{}, err
		}
	}
	answer := lifecycle.Answer{Texts: make([]string, 0, 2*len(c.Texts))}
	for _, key := range c.Texts {
		e, err := k.read(ctx, c, b, key)
		switch {
		case err != nil:
			return lifecycle.Answer{}, err
		case e == nil:
			answer.Texts = append(answer.Texts, "", "")
		default:
			answer.Texts = append(answer.Texts, strconv.Itoa(len(e.value)), e.metadata)
			answer.Body = append(answer.Body, e.value...)
		}
	}
	return answer, nil
}

// put has the arguments key, time to live (seconds), expiration (seconds since 1970) and metadata (JSON); "" = none.
func (k *kv) put(ctx context.Context, c *lifecycle.Call) (lifecycle.Answer, error) {
	if _, err := k.open(ctx, c, 4); err != nil {
		return lifecycle.Answer{}, err
	}
	key, metadata := c.Texts[0], c.Texts[3]
	if err := checkKey(key); err != nil {
		return lifecycle.Answer{}, err
	}
	expires, err := expiration(c.Texts[1], c.Texts[2], time.Now())
	switch {
	case err != nil:
		return lifecycle.Answer{}, err
	case len(metadata) > maxMetadata:
		//nolint:staticcheck // Cloudflare's words
		return lifecycle.Answer{}, fmt.Errorf("413 Metadata length of %d exceeds limit of %d.", len(metadata), maxMetadata)
	case metadata != "" && !json.Valid([]byte(metadata)):
		return lifecycle.Answer{}, errors.New("400 the metadata is no JSON")
	case len(c.Body) > MaxValue:
		//nolint:staticcheck // Cloudflare's words
		return lifecycle.Answer{}, fmt.Errorf("413 Value length of %d exceeds limit of %d.", len(c.Body), MaxValue)
	}
	m := nats.NewMsg(base(c) + encodeKey(key))
	m.Data = c.Body
	if metadata != "" {
		m.Header.Set(headerMetadata, metadata)
	}
	var opts []jetstream.PublishOpt
	if !expires.IsZero() {
		m.Header.Set(headerExpires, strconv.FormatInt(expires.Unix(), 10))
		opts = append(opts, jetstream.WithMsgTTL(max(time.Second, time.Until(expires).Round(time.Second))))
	}
	c.Wrote.Store(true)
	if _, err := k.publish(ctx, streamOf(c), k.cfg.kvBytes(k.policy(c.Owner)), m, opts...); err != nil {
		return lifecycle.Answer{}, k.failed(c, err)
	}
	return lifecycle.Answer{}, nil
}

// expiration is when a value ends; zero = never. The time to live is at least one second, where Cloudflare has 60.
func expiration(ttl, at string, now time.Time) (time.Time, error) {
	if ttl != "" {
		n, err := strconv.ParseInt(ttl, 10, 64)
		if err != nil || n <= 0 || n > MaxTTL {
			//nolint:staticcheck // Cloudflare's words
			return time.Time{}, fmt.Errorf("400 Invalid expiration_ttl of %s. Please specify integer greater than 0.", ttl)
		}
		return now.Add(time.Duration(n) * time.Second), nil
	}
	if at != "" {
		n, err := strconv.ParseInt(at, 10, 64)
		if err != nil || n <= now.Unix() || n > now.Unix()+MaxTTL {
			return time.Time{}, fmt.Errorf( //nolint:staticcheck // Cloudflare's words
				"400 Invalid expiration of %s. Please specify integer greater than the current number of seconds since the UNIX epoch.", at)
		}
		return time.Unix(n, 0), nil
	}
	return time.Time{}, nil
}

// MaxTTL is the longest time to live: 200 years, in seconds. JetStream counts in nanoseconds.
const MaxTTL = 200 * 365 * 24 * 3600

// remove removes a key without a trace: a marker would take the owner's bytes.
func (k *kv) remove(ctx context.Context, c *lifecycle.Call) (lifecycle.Answer, error) {
	b, err := k.open(ctx, c, 1)
	if err == nil {
		err = checkKey(c.Texts[0])
	}
	if err != nil {
		return lifecycle.Answer{}, err
	}
	c.Wrote.Store(true)
	if err := b.stream.Purge(ctx, jetstream.WithPurgeSubject(base(c)+encodeKey(c.Texts[0]))); err != nil {
		return lifecycle.Answer{}, k.failed(c, err)
	}
	return lifecycle.Answer{}, nil
}
