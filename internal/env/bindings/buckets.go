package bindings

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
)

// KVBucket is the name of the KV bucket with the data of an owner. It exists from the first call on.
func KVBucket(owner string) string { return "PINWHEEL_KV_" + owner }

// markers is how long the marker of an expired key stays. JetStream wants one to let messages expire.
const markers = time.Second

// kvBytes is how many bytes the KV bucket of an owner with this policy may have.
func (c Config) kvBytes(p workers.Policy) int64 { return cmp.Or(int64(p.KVBytes), c.KVBytes) }

// Bucket is the KV bucket of an owner with this policy, as it is created.
func (c Config) Bucket(owner string, p workers.Policy) jetstream.KeyValueConfig {
	size := min(c.kvBytes(p), firstBytes)
	return jetstream.KeyValueConfig{
		Bucket: KVBucket(owner), Description: "Data of Pinwheel's owner " + owner + ": key <namespace>.<key>", History: 1,
		MaxBytes:       size,
		LimitMarkerTTL: markers, Replicas: c.Replicas, Storage: jetstream.FileStorage,
	}
}

// bucket is the open bucket of an owner.
type bucket struct {
	nc     *nats.Conn
	stream jetstream.Stream
	copies int
	// secret authenticates the cursors of lists. The bucket has it, so that all processes have the same.
	secret []byte
	sweeps sweeps // of an object store
}

// secretKey has the secret of cursors. No namespace has such a name.
const secretKey = "=cursors"

// createBucket creates the bucket of an owner, or opens it.
func (k *kv) createBucket(ctx context.Context, owner string) (*bucket, error) {
	p, name := k.policy(owner), resources.BucketStream(KVBucket(owner))
	r := resources.Reconciler{JS: k.js, Log: k.cfg.Log, OnlyMissing: k.cfg.OnlyMissing, Grows: true}
	kv, err := r.Bucket(ctx, k.cfg.Bucket(owner, p))
	if err == nil {
		err = k.bound(ctx, name, p.KVBytes)
	}
	if err != nil {
		_, err = inWords(k.told(name, err), "kvBytes")
		return nil, err
	}
	b := &bucket{nc: k.js.Conn(), secret: make([]byte, 32)}
	_, _ = rand.Read(b.secret) // it never fails
	if _, err = kv.Create(ctx, secretKey, b.secret); errors.Is(err, jetstream.ErrKeyExists) {
		var entry jetstream.KeyValueEntry
		if entry, err = kv.Get(ctx, secretKey); err == nil {
			b.secret = entry.Value()
		}
	}
	if err != nil {
		_, err = inWords(err, "kvBytes")
		return nil, err
	}
	if b.stream, err = k.js.Stream(ctx, name); err != nil {
		_, err = inWords(err, "kvBytes")
		return nil, err
	}
	b.copies = b.stream.CachedInfo().Config.Replicas
	return b, nil
}
