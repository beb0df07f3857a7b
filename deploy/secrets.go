package deploy

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/env/secrets"
	"github.com/pinwheel-run/pinwheel/internal/lib/guard"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
	"github.com/pinwheel-run/pinwheel/internal/lib/stored"
)

// BucketSecrets is the KV bucket of the secrets. The key is that of secrets.Name, the value an age ciphertext.
const BucketSecrets = "PINWHEEL_SECRETS"

// Bounds of the secrets of an owner. Each process decrypts all secrets, and keeps their values in memory.
const (
	// MostSecrets is the largest number of secrets of a worker, and of those of an owner for all its workers.
	MostSecrets = 128
	// MostOwnerSecrets is the largest number of secrets of an owner and its workers together, and MostOwnerSecretBytes
	// that of their bytes when encrypted.
	MostOwnerSecrets, MostOwnerSecretBytes = 1024, 4 << 20
	// mostSecretNames is how many names of secrets an owner may use, with those of removed ones: the bucket keeps a
	// marker of each. With more, the markers that are as old as markerAge go.
	mostSecretNames = 4096
	// forgottenAtOnce is how many of these markers go at once, the oldest first.
	forgottenAtOnce = 64
	// markerAge is for how long a marker of a removal stays at least. A process without a connection reads the markers of
	// what was removed meanwhile; without them it would go on with a removed secret.
	markerAge = 24 * time.Hour
	// mostAwaited is how many workers may have secrets before they are deployed: the first deploy of a worker needs the
	// secrets that it names.
	mostAwaited = 8
	// secretsBytes is the largest size of a new bucket of secrets.
	secretsBytes = 32 << 20
	// putTries is how often Put tries again when other secrets of the owner are stored at the same time.
	putTries = 50
)

// ErrNoSecret is the error when there is no such secret.
var ErrNoSecret = errors.New("no such secret")

// Secrets has the encrypted secrets of all owners, in JetStream. It cannot read their values. Any number of goroutines
// and processes may use it at once.
type Secrets struct {
	js  jetstream.JetStream
	kv  jetstream.KeyValue
	cfg Config
	// markerAge is markerAge; tests have a shorter one.
	markerAge time.Duration
}

// OpenSecrets creates the bucket, or updates it to what cfg says. There is nothing to close.
func OpenSecrets(ctx context.Context, js jetstream.JetStream, cfg Config) (*Secrets, error) {
	cfg = cfg.WithDefaults()
	kv, err := (&resources.Reconciler{JS: js, Log: cfg.Log}).Bucket(ctx, cfg.secrets())
	if err != nil {
		return nil, fmt.Errorf("open bucket %s: %w", BucketSecrets, err)
	}
	return &Secrets{js, kv, cfg, markerAge}, nil
}

// StoredSecret is a secret as it is stored.
type StoredSecret struct {
	secrets.Name
	Sealed   []byte    // age ciphertext
	Set      time.Time // when it was stored
	Revision uint64
}

// Put stores a sealed secret, in place of the one before. Each process has it within moments. The error is a
// *QuotaError when the owner may not have it. However many processes store secrets of an owner at once, its bounds
// hold.
func (s *Secrets) Put(ctx context.Context, n secrets.Name, sealed []byte) error {
	if err := n.Validate(); err != nil {
		return err
	}
	if len(sealed) > secrets.MaxSealed {
		return fmt.Errorf("secret %s has %d bytes when encrypted: at most %d are allowed", n, len(sealed), secrets.MaxSealed)
	}
	for try := 1; ; try++ {
		have, err := s.inventory(ctx, n.Owner)
		if err == nil && have.names >= mostSecretNames && s.forget(ctx, have) {
			have, err = s.inventory(ctx, n.Owner)
		}
		if err == nil && !guard.SecretBounds.Off() {
			err = have.admit(ctx, s, n, len(sealed))
		}
		if err != nil {
			return err
		}
		// The server stores it only if no secret of the owner was stored or removed since the inventory.
		_, err = s.js.Publish(ctx, s.subject(n.Key()), sealed, jetstream.WithExpectLastSequenceForSubject(have.last,
			s.subject(n.Owner+".*.*")))
		switch {
		case err == nil:
			return nil
		case !isConflict(err):
			return fmt.Errorf("store secret %s: %w", n, resources.Stranger(err, s.subject(n.Key())))
		case try == putTries || !sleep(ctx, time.Duration(try)*time.Millisecond):
			return fmt.Errorf("store secret %s: other secrets of owner %s are stored all the time: try again", n, n.Owner)
		}
	}
}

func (s *Secrets) subject(key string) string { return "$KV." + BucketSecrets + "." + key }

// inventory is what is stored of the secrets of an owner.
type inventory struct {
	sizes map[string]int64 // by key, without removed ones
	names int              // keys, with those of removed secrets
	last  uint64           // sequence of the newest entry; 0: there is none
	free  int64            // bytes that are free in the bucket
	// removed are the markers of removed secrets, the oldest first.
	removed []*stored.Message
}

// inventory reads the headers of the secrets of an owner.
func (s *Secrets) inventory(ctx context.Context, owner string) (have inventory, err error) {
	have.sizes, have.free = map[string]int64{}, math.MaxInt64
	bucket, err := s.js.Stream(ctx, resources.BucketStream(BucketSecrets))
	if err != nil {
		return have, fmt.Errorf("count the secrets of owner %s: %w", owner, err)
	}
	if info := bucket.CachedInfo(); info.Config.MaxBytes > 0 {
		have.free = info.Config.MaxBytes - int64(info.State.Bytes)
	}
	scan, err := stored.Headers(ctx, s.js.Conn(), resources.BucketStream(BucketSecrets),
		[]string{s.subject(owner + ".*.*")}, true)
	if err != nil {
		return have, fmt.Errorf("count the secrets of owner %s: %w", owner, err)
	}
	for m, err := range scan.Messages(ctx) {
		if err != nil {
			return have, fmt.Errorf("count the secrets of owner %s: %w", owner, err)
		}
		have.names++
		have.last = max(have.last, m.Sequence)
		if m.Header.Get("KV-Operation") == "" {
			have.sizes[strings.TrimPrefix(m.Subject, s.subject(""))] = entryBytes(m.Header)
		} else {
			have.removed = append(have.removed, m)
		}
	}
	return have, nil
}

// forget removes the oldest markers of removed secrets, and reports whether there were any that are old enough. It
// removes a message of that sequence only: a secret that is stored meanwhile stays, and nothing older is there, because
// the bucket keeps one value of each key.
func (s *Secrets) forget(ctx context.Context, have inventory) (some bool) {
	bucket, err := s.js.Stream(ctx, resources.BucketStream(BucketSecrets))
	if err != nil {
		return false
	}
	for _, m := range have.removed[:min(len(have.removed), forgottenAtOnce)] {
		if time.Since(m.Time) < s.markerAge {
			break
		}
		if err := bucket.Purge(ctx, jetstream.WithPurgeSubject(m.Subject),
			jetstream.WithPurgeSequence(m.Sequence+1)); err != nil {
			s.cfg.Log.Debug().Err(err).Str("subject", m.Subject).Msg("the marker of a removed secret stays")
			break
		}
		some = true
	}
	return some
}

// admit returns a *QuotaError if the owner may not have a secret of that name and size too.
func (have inventory) admit(ctx context.Context, s *Secrets, n secrets.Name, size int) error {
	bytes, scope := int64(0), 0
	for key, of := range have.sizes {
		bytes += of
		if strings.HasPrefix(key, strings.TrimSuffix(n.Key(), n.Name)) {
			scope++
		}
	}
	before, known := have.sizes[n.Key()]
	refused := func(format string, args ...any) error {
		return &QuotaError{fmt.Sprintf("secret %s is refused: "+format, append([]any{n}, args...)...)}
	}
	const remove = "remove one with 'pinwheel secrets rm'"
	switch after := bytes - before + int64(size); {
	case !known && scope >= MostSecrets:
		return refused("%s has %d secrets, and at most %d are allowed: "+remove, n.Scope(), scope, MostSecrets)
	case !known && len(have.sizes) >= MostOwnerSecrets:
		return refused("owner %s has %d secrets, and at most %d are allowed: "+remove, n.Owner, len(have.sizes), MostOwnerSecrets)
	case !known && have.names >= mostSecretNames && !slices.ContainsFunc(have.removed,
		func(m *stored.Message) bool { return m.Subject == s.subject(n.Key()) }):
		return refused("owner %s has used %d names of secrets, with those that were removed less than %s ago: use one of these again", n.Owner, have.names, s.markerAge)
	case after > MostOwnerSecretBytes && int64(size) > before:
		return refused("the secrets of owner %s would have %d bytes when encrypted, and at most %d are allowed: "+remove, n.Owner, after, MostOwnerSecretBytes)
	case after > have.free && int64(size) > before:
		return refused("the secrets of owner %s would have %d bytes when encrypted, and the bucket %s has %d bytes left for all owners: "+remove, n.Owner, after, BucketSecrets, have.free)
	case known || n.Worker == "":
		return nil
	}
	awaited, err := have.awaited(ctx, s, n)
	if err == nil && awaited > mostAwaited {
		err = refused("there is no worker %s, and %d others of owner %s have secrets and are not deployed either: at most %d may wait for their first deploy",
			n.Scope(), awaited-1, n.Owner, mostAwaited)
	}
	return err
}

// awaited counts the workers that have secrets, with that of n, and are not deployed. It is 0 when that of n is.
func (have inventory) awaited(ctx context.Context, s *Secrets, n secrets.Name) (int, error) {
	absent := map[string]bool{n.Worker: true}
	for key := range have.sizes {
		if of, err := secrets.ParseKey(key); err == nil && of.Worker != "" {
			absent[of.Worker] = true
		}
	}
	scan, err := stored.Headers(ctx, s.js.Conn(), resources.BucketStream(s.cfg.Bucket),
		[]string{s.cfg.subject(n.Owner, "*")}, true)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return len(absent), nil
	}
	if err != nil {
		return 0, fmt.Errorf("look for worker %s: %w", n.Scope(), err)
	}
	for m, err := range scan.Messages(ctx) {
		if err != nil {
			return 0, fmt.Errorf("look for worker %s: %w", n.Scope(), err)
		}
		if m.Header.Get("KV-Operation") == "" {
			delete(absent, strings.TrimPrefix(m.Subject, s.cfg.subject(n.Owner, "")))
		}
	}
	if !absent[n.Worker] {
		return 0, nil
	}
	return len(absent), nil
}

// Replace stores another ciphertext of a secret, if the stored one is still old. It reports whether it was.
func (s *Secrets) Replace(ctx context.Context, old StoredSecret, sealed []byte) (bool, error) {
	_, err := s.kv.Update(ctx, old.Key(), sealed, old.Revision)
	if isConflict(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("store secret %s: %w", old.Name, err)
	}
	return true, nil
}

// Remove deletes a secret. The error is ErrNoSecret when there is none of that name.
func (s *Secrets) Remove(ctx context.Context, n secrets.Name) error {
	if err := n.Validate(); err != nil {
		return err
	}
	_, err := s.kv.Get(ctx, n.Key())
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return fmt.Errorf("%w: %s", ErrNoSecret, n)
	}
	if err == nil {
		// The marker of the removal tells running processes. With a history of 1 it also deletes the ciphertext.
		err = s.kv.Delete(ctx, n.Key())
	}
	if err != nil {
		return fmt.Errorf("remove secret %s: %w", n, err)
	}
	return nil
}

// List is the secrets of an owner and of its workers, or of all owners if owner is empty. It is sorted by key.
func (s *Secrets) List(ctx context.Context, owner string) ([]StoredSecret, error) {
	filter := ">"
	if owner != "" {
		if err := events.CheckName("owner", owner); err != nil {
			return nil, err
		}
		filter = owner + ".*.*"
	}
	return s.list(ctx, filter)
}

func (s *Secrets) list(ctx context.Context, filter string) ([]StoredSecret, error) {
	watch, err := s.kv.Watch(ctx, filter, jetstream.IgnoreDeletes())
	if err != nil {
		return nil, fmt.Errorf("list secrets: %w", err)
	}
	defer resources.StopWatch(watch)
	var list []StoredSecret
	for {
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("list secrets: %w", ctx.Err())
		case e, ok := <-watch.Updates():
			if !ok {
				return nil, errors.New("list secrets: the connection was closed")
			}
			if e == nil {
				slices.SortFunc(list, func(a, b StoredSecret) int { return strings.Compare(a.Key(), b.Key()) })
				return list, nil
			}
			if n, err := secrets.ParseKey(e.Key()); err == nil {
				list = append(list, StoredSecret{n, e.Value(), e.Created(), e.Revision()})
			}
		}
	}
}

// Missing returns the names for which neither the worker nor its owner has a secret. It does not check that processes
// can decrypt the others.
func (s *Secrets) Missing(ctx context.Context, owner, worker string, names []string) (missing []string, err error) {
	for _, name := range names {
		found := false
		for _, n := range []secrets.Name{{Owner: owner, Worker: worker, Name: name}, {Owner: owner, Name: name}} {
			if err := n.Validate(); err != nil {
				return nil, err
			}
			_, err := s.kv.Get(ctx, n.Key())
			if err != nil && !errors.Is(err, jetstream.ErrKeyNotFound) {
				return nil, fmt.Errorf("read secret %s: %w", n, err)
			}
			found = found || err == nil
		}
		if !found {
			missing = append(missing, name)
		}
	}
	return missing, nil
}

// MissingSecretsError says that a worker was not deployed because secrets that it names are not set.
type MissingSecretsError struct {
	Target string // "owner/name"
	Names  []string
}

// Error says how to set them.
func (e *MissingSecretsError) Error() string {
	if len(e.Names) == 1 {
		return fmt.Sprintf("%s is refused: it names the secret %s, which is not set; 'pinwheel secrets set %s %s' sets it",
			e.Target, e.Names[0], e.Target, e.Names[0])
	}
	return fmt.Sprintf("%s is refused: it names secrets that are not set: %s; 'pinwheel secrets set %s NAME' sets one",
		e.Target, strings.Join(e.Names, ", "), e.Target)
}

// checkSecrets returns a *MissingSecretsError if a secret that w names is not set.
func checkSecrets(ctx context.Context, s *Secrets, w *workers.Worker) error {
	if s == nil || len(w.Secrets) == 0 {
		return nil
	}
	missing, err := s.Missing(ctx, w.Owner, w.Name, w.Secrets)
	if err == nil && len(missing) > 0 {
		err = &MissingSecretsError{w.Target(), missing}
	}
	return err
}

// SecretUsers are the workers of which an active version names the secret and would have no value without it, as
// "OWNER/WORKER".
func (s *Store) SecretUsers(ctx context.Context, all *Secrets, n secrets.Name) (users []string, err error) {
	if err := n.Validate(); err != nil {
		return nil, err
	}
	list, err := s.List(ctx, n.Owner)
	if err != nil {
		return nil, err
	}
	stored, err := all.List(ctx, n.Owner)
	if err != nil {
		return nil, err
	}
	for _, w := range list {
		names := slices.ContainsFunc(w.Versions, func(v *workers.Worker) bool { return slices.Contains(v.Secrets, n.Name) })
		if !names || n.Worker != "" && n.Worker != w.Name {
			continue
		}
		other := secrets.Name{Owner: n.Owner, Name: n.Name} // stays when n is that of the worker
		if n.Worker == "" {
			other.Worker = w.Name
		}
		if !slices.ContainsFunc(stored, func(o StoredSecret) bool { return o.Name == other }) {
			users = append(users, w.Target())
		}
	}
	return users, nil
}
