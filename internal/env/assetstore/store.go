package assetstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/deploy/assets"
	"github.com/pinwheel-run/pinwheel/internal/lib/perowner"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
)

// Bucket is the KV bucket with the files.
const Bucket = "PINWHEEL_ASSETS"

// Config of a Store.
type Config struct {
	MaxBytes int64 // of the bucket; 0 = as many as JetStream has
	// Room counts once, before anything is stored. What it returns says whether the bucket has room for so many bytes more
	// of an owner. bounded is false where the fleet's user stores them. nil = there is room, until the server refuses.
	Room     func(ctx context.Context, owner string, bounded bool) (func(bytes int64) error, error)
	Replicas int   // 1 to 5; 0 = 1
	Cache    int64 // bytes that a Store keeps in memory of what it reads; 0 = none
	Log      zerolog.Logger
}

// Store keeps files. Several goroutines may call its methods.
type Store struct {
	js    jetstream.JetStream
	cfg   Config
	cache *cache
	turns *perowner.Turns
	young time.Duration // parts are so old at most whose file may still come

	mu sync.Mutex
	kv jetstream.KeyValue // nil = not opened
}

// New makes a Store. It does not talk to NATS.
func New(js jetstream.JetStream, cfg Config) *Store {
	return &Store{js: js, cfg: cfg, cache: newCache(cfg.Cache), turns: perowner.NewTurns(), young: time.Hour}
}

// names of encodings in keys.
var names = [...]string{"raw", "gz", "br"}

func fileKey(owner, hash string) string { return owner + "." + hash }

func partKey(owner, hash string, e assets.Encoding, n int) string {
	return owner + "." + hash + "." + names[e] + "." + strconv.Itoa(n)
}

func (c Config) bucket() jetstream.KeyValueConfig {
	return jetstream.KeyValueConfig{
		Bucket: Bucket, Description: "Files of Pinwheel's workers: key <owner>.<sha256>, and <owner>.<sha256>.<encoding>.<part>",
		History: 1, MaxBytes: c.MaxBytes, Replicas: max(1, c.Replicas), Storage: jetstream.FileStorage,
	}
}

// Resources are all resources of this package in JetStream.
func Resources(cfg Config) []resources.Resource {
	bucket := cfg.bucket()
	return []resources.Resource{{Bucket: &bucket}}
}

// Open creates the bucket, or updates it to the configuration.
func (s *Store) Open(ctx context.Context) error { return s.reconcile(ctx, false) }

// reconcile creates the bucket. Unless onlyMissing, it updates one that is there.
func (s *Store) reconcile(ctx context.Context, onlyMissing bool) error {
	kv, err := (&resources.Reconciler{JS: s.js, Log: s.cfg.Log, OnlyMissing: onlyMissing}).Bucket(ctx, s.cfg.bucket())
	if err != nil {
		return fmt.Errorf("open bucket %s: %w", Bucket, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kv = kv
	return nil
}

// bucket is the bucket, which an earlier Pinwheel may not have made.
func (s *Store) bucket(ctx context.Context) (jetstream.KeyValue, error) {
	get := func() jetstream.KeyValue {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.kv
	}
	if kv := get(); kv != nil {
		return kv, nil
	}
	err := s.reconcile(ctx, true)
	return get(), err
}

// ErrNotFound is the error when a file is not stored.
var ErrNotFound = errors.New("the file is not stored")

// get reads a key.
func (s *Store) get(ctx context.Context, key string) ([]byte, error) {
	kv, err := s.bucket(ctx)
	if err == nil {
		var e jetstream.KeyValueEntry
		if e, err = kv.Get(ctx, key); err == nil {
			return e.Value(), nil
		}
	}
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		err = ErrNotFound
	}
	return nil, fmt.Errorf("read %s of bucket %s: %w", key, Bucket, err)
}
