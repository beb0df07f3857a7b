package certificates

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/internal/env/secrets"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
)

// Kinds of keys, each followed by the name of a host, an owner or a registered domain.
const (
	keyAccount = "account"
	kindCert   = "cert."
	kindToken  = "token."
	kindLedger = "owner."
	kindDomain = "domain."
)

// patience is how long a request to NATS may take.
const patience = 5 * time.Second

// store keeps what the fleet has for one directory.
type store struct {
	js  jetstream.JetStream
	cfg Config
	*mirror
}

// open returns the bucket, which may have been deleted since.
func (s *store) open(ctx context.Context) (jetstream.KeyValue, error) {
	kv, err := (&resources.Reconciler{JS: s.js, Log: s.log, OnlyMissing: true}).Bucket(ctx, bucket(s.cfg.Replicas))
	if err != nil {
		return nil, fmt.Errorf("open bucket %s: %w", Bucket, err)
	}
	return kv, nil
}

// do calls f with the bucket and the whole key.
func (s *store) do(ctx context.Context, key string, f func(context.Context, jetstream.KeyValue, string) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	kv, err := s.js.KeyValue(ctx, Bucket)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		kv, err = s.open(ctx)
	}
	if err == nil {
		err = f(ctx, kv, s.prefix+key)
	}
	if err != nil {
		return fmt.Errorf("key %s of bucket %s: %w", s.prefix+key, Bucket, err)
	}
	return nil
}

// read returns what is stored at a key now. It is nil when there is nothing.
func (s *store) read(ctx context.Context, key string) (e jetstream.KeyValueEntry, err error) {
	err = s.do(ctx, key, func(ctx context.Context, kv jetstream.KeyValue, whole string) (err error) {
		if e, err = kv.Get(ctx, whole); errors.Is(err, jetstream.ErrKeyNotFound) {
			e, err = nil, nil
		}
		return err
	})
	return e, err
}

// errConflict says that another process has changed the key meanwhile.
var errConflict = errors.New("another process has changed it")

// update stores text at a key that has this revision; 0 = it has no value.
func (s *store) update(ctx context.Context, key string, text []byte, revision uint64) error {
	return s.do(ctx, key, func(ctx context.Context, kv jetstream.KeyValue, whole string) (err error) {
		var now uint64
		if revision == 0 {
			now, err = kv.Create(ctx, whole, text)
		} else {
			now, err = kv.Update(ctx, whole, text, revision)
		}
		switch {
		case errors.Is(err, jetstream.ErrKeyExists) || errors.Is(err, jetstream.ErrKeyRevisionMismatch):
			return errConflict
		case err == nil:
			s.put(whole, text, now)
		}
		return err
	})
}

func (s *store) seal(key string, text []byte) ([]byte, error) {
	return secrets.SealData(s.prefix+key, text, s.cfg.Identities.Recipient())
}

// write encrypts text and stores it.
func (s *store) write(ctx context.Context, key string, text []byte) error {
	sealed, err := s.seal(key, text)
	if err != nil {
		return err
	}
	return s.do(ctx, key, func(ctx context.Context, kv jetstream.KeyValue, whole string) error {
		revision, err := kv.Put(ctx, whole, sealed)
		if err == nil {
			s.put(whole, sealed, revision)
		}
		return err
	})
}

// purge removes a key. The error is only logged: what is left goes after a time.
func (s *store) purge(ctx context.Context, key string) {
	err := s.do(context.WithoutCancel(ctx), key, func(ctx context.Context, kv jetstream.KeyValue,
		whole string) error {
		return kv.Purge(ctx, whole)
	})
	if err != nil {
		s.log.Debug().Err(err).Msg("a value was not removed")
	}
}

// openValue decrypts what is stored at a key.
func (s *store) openValue(key string, sealed []byte) ([]byte, error) {
	return s.cfg.Identities.OpenData(s.prefix+key, sealed)
}

// renewKey encrypts to the first identity what is encrypted to another one, so that the other one can go.
func (s *store) renewKey(ctx context.Context) {
	keys := []string{keyAccount}
	for _, name := range s.with(kindCert) {
		keys = append(keys, kindCert+name)
	}
	for _, key := range keys {
		v, ok, _ := s.get(key)
		if !ok || s.cfg.Identities.Newest(v.sealed) {
			continue
		}
		text, err := s.openValue(key, v.sealed)
		if err != nil {
			continue // it is logged where it is used
		}
		sealed, err := s.seal(key, text)
		if err == nil {
			err = s.update(ctx, key, sealed, v.revision)
		}
		if err != nil && !errors.Is(err, errConflict) {
			s.log.Warn().Err(err).Msg("a certificate was not encrypted to the newest key; the next process that starts tries again")
		}
	}
}
