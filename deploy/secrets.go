package deploy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/resources"
	"github.com/pinwheel-run/pinwheel/internal/secrets"
)

// BucketSecrets is the KV bucket of the secrets. The key is that of secrets.Name, the value an age ciphertext.
const BucketSecrets = "PINWHEEL_SECRETS"

// MostSecrets is the largest number of secrets of a worker, and of those of an owner for all its workers. Each process
// decrypts all of them.
const MostSecrets = 128

// ErrNoSecret is the error when there is no such secret.
var ErrNoSecret = errors.New("no such secret")

// Secrets has the encrypted secrets of all owners, in JetStream. It cannot read their values. Any number of goroutines
// and processes may use it at once.
type Secrets struct {
	kv  jetstream.KeyValue
	cfg Config
}

// OpenSecrets creates the bucket, or updates it to what cfg says. There is nothing to close.
func OpenSecrets(ctx context.Context, js jetstream.JetStream, cfg Config) (*Secrets, error) {
	cfg = cfg.WithDefaults()
	kv, err := (&resources.Reconciler{JS: js, Log: cfg.Log}).Bucket(ctx, cfg.secrets())
	if err != nil {
		return nil, fmt.Errorf("open bucket %s: %w", BucketSecrets, err)
	}
	return &Secrets{kv, cfg}, nil
}

// StoredSecret is a secret as it is stored.
type StoredSecret struct {
	secrets.Name
	Sealed   []byte    // age ciphertext
	Set      time.Time // when it was stored
	Revision uint64
}

// Put stores a sealed secret, in place of the one before. Each process has it within moments.
func (s *Secrets) Put(ctx context.Context, n secrets.Name, sealed []byte) error {
	if err := n.Validate(); err != nil {
		return err
	}
	if len(sealed) > secrets.MaxSealed {
		return fmt.Errorf("secret %s has %d bytes when encrypted: at most %d are allowed", n, len(sealed), secrets.MaxSealed)
	}
	all, err := s.list(ctx, strings.TrimSuffix(n.Key(), n.Name)+"*")
	if err != nil {
		return err
	}
	known := slices.ContainsFunc(all, func(o StoredSecret) bool { return o.Name == n })
	// Two that store at once may exceed the bound by one.
	if !known && len(all) >= MostSecrets {
		return fmt.Errorf("secret %s: %s has %d secrets, and at most %d are allowed", n, n.Scope(), len(all), MostSecrets)
	}
	if _, err = s.kv.Put(ctx, n.Key(), sealed); err != nil {
		return fmt.Errorf("store secret %s: %w", n, err)
	}
	return nil
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
func checkSecrets(ctx context.Context, s *Secrets, w *events.Worker) error {
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
	workers, err := s.List(ctx, n.Owner)
	if err != nil {
		return nil, err
	}
	stored, err := all.List(ctx, n.Owner)
	if err != nil {
		return nil, err
	}
	for _, w := range workers {
		names := slices.ContainsFunc(w.Versions, func(v *events.Worker) bool { return slices.Contains(v.Secrets, n.Name) })
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
