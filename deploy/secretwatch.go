package deploy

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/internal/env/secrets"
)

// SecretFollower gets what the bucket of secrets holds. One goroutine calls its methods.
type SecretFollower interface {
	// Stored is called with each secret, and with each change. It may be called again with the same ciphertext.
	Stored(n secrets.Name, sealed []byte)
	// Removed is called when a secret was removed.
	Removed(n secrets.Name)
	// Settled is called when all secrets have come that were there when the watch began.
	Settled()
}

// Watch passes all secrets and each change to f, until ctx is done. A secret that is gone without the marker of a
// removal is not reported: the bucket was lost, and workers go on with the values that they have.
func (s *Secrets) Watch(ctx context.Context, f SecretFollower) {
	watch := bucketWatch{
		kv: s.kv, what: "secrets", every: s.cfg.CheckEvery, log: s.cfg.Log,
		follower: &secretFollower{log: s.cfg.Log, to: f, known: map[string]bool{}},
	}
	_ = watch.run(ctx) // ctx's error
}

// secretFollower is the follower of the bucket of secrets.
type secretFollower struct {
	log   zerolog.Logger
	to    SecretFollower
	known map[string]bool // keys with a value
	gone  map[string]bool // known keys without an entry in the pass in progress
}

func (f *secretFollower) begin(bool) {
	f.gone = map[string]bool{}
	for key := range f.known {
		f.gone[key] = true
	}
}

func (f *secretFollower) take(_ context.Context, e jetstream.KeyValueEntry, _ bool) error {
	delete(f.gone, e.Key())
	n, err := secrets.ParseKey(e.Key())
	if err != nil {
		f.log.Error().Err(err).Msg("an entry in the bucket of secrets is skipped")
		return nil
	}
	if e.Operation() != jetstream.KeyValuePut {
		delete(f.known, e.Key())
		f.to.Removed(n)
		return nil
	}
	f.known[e.Key()] = true
	f.to.Stored(n, e.Value())
	return nil
}

func (f *secretFollower) settle(context.Context) error {
	for key := range f.gone {
		delete(f.known, key)
		f.log.Error().Str("secret", key).Msg("a secret has vanished from its bucket without a removal: workers here go on with its value. " +
			"Restore the bucket, or set the secret again; 'pinwheel secrets rm' removes it")
	}
	f.to.Settled()
	return nil
}

func (f *secretFollower) tick(time.Time) (keys int) { return len(f.known) }
