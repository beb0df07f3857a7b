package control

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/internal/env/secrets"
)

// sealedSecrets are the secrets of all owners, as they are stored: encrypted.
type sealedSecrets struct {
	store      *deploy.Secrets
	workers    *deploy.Store
	identities *secrets.Identities // nil: this process has no key
	process    Process
	unopened   bool // a command lists them as they are
}

// SecretKeys says to whom secrets are encrypted for a process: age recipients, which are public. The first is the one
// to encrypt to. There are none when the process has no PINWHEEL_SECRETS_KEY.
//
// The command asks the processes, and no stored entry has the recipients: anyone who could change such an entry for a
// moment would read every secret that is set afterwards. An answer comes on a subject that only the fleet's user may
// subscribe. A publisher can make JetStream write to stored entries (docs/guides/security.md, "Hostile owners"), and
// cannot make it answer a control request.
type SecretKeys struct {
	Member
	Recipients []string `json:"recipients"`
	// Processes are all processes of the fleet that this one knows, including itself.
	Processes []Member `json:"processes"`
	// Left are the IDs of the last processes that reported that they leave.
	Left []string `json:"left,omitempty"`
}

// AskSecretKeys asks for public keys.
type AskSecretKeys struct{ asker }

// keys returns the public keys of this process.
func (s *sealedSecrets) keys(context.Context, AskSecretKeys) (SecretKeys, error) {
	keys := SecretKeys{Recipients: []string{}}
	keys.Member, keys.Processes, keys.Left = s.process.Members()
	if s.identities != nil {
		keys.Recipients = s.identities.Recipients()
	}
	return keys, nil
}

// Secret describes a secret that is stored. It has no value.
type Secret struct {
	secrets.Name
	Set time.Time `json:"set"` // when it was stored
	// Recipients are those of the answering process that can open it. The fleet's command cannot say that.
	Recipients []string `json:"recipients,omitempty"`
	// Problem says why the answering process cannot open it; empty: it can, or none has tried.
	Problem string `json:"problem,omitempty"`
}

// ListSecrets chooses the secrets of an owner, or of one of its workers.
type ListSecrets struct {
	OwnerName
	Worker string `json:"worker"` // "" = all of the owner, also those for all workers
	After  string `json:"after"`  // key after which the page begins
	Limit  int    `json:"limit"`
	asker
}

// SecretList is a page of the list of secrets, sorted by key.
type SecretList struct {
	Secrets []Secret `json:"secrets"`
	Next    string   `json:"next,omitempty"` // key after which the next page begins; empty at the end
}

// list lists what is stored. It opens it to say what this process can open, but not for owners: one could have the
// fleet decrypt without end.
func (s *sealedSecrets) list(ctx context.Context, r ListSecrets) (SecretList, error) {
	list := SecretList{Secrets: []Secret{}}
	if err := errors.Join(r.check(), CheckName("worker", r.Worker)); err != nil {
		return list, err
	}
	limit, err := listed(r.Limit)
	if err != nil {
		return list, err
	}
	all, err := s.store.List(ctx, r.Owner)
	if err != nil {
		return list, err
	}
	for _, one := range all {
		if r.Worker != "" && one.Worker != r.Worker || one.Key() <= r.After {
			continue
		}
		if len(list.Secrets) == limit {
			list.Next = list.Secrets[limit-1].Key()
			break
		}
		described := Secret{Name: one.Name, Set: one.Set}
		if r.by == "" && !s.unopened {
			described = s.opened(described, one.Sealed)
		}
		list.Secrets = append(list.Secrets, described)
	}
	return list, nil
}

// opened says which identities of this process open a secret.
func (s *sealedSecrets) opened(one Secret, sealed []byte) Secret {
	if s.identities == nil {
		one.Problem = "this process has no PINWHEEL_SECRETS_KEY"
		return one
	}
	one.Recipients = s.identities.OpenedBy(sealed)
	if _, err := s.identities.Open(one.Name, sealed); err != nil {
		one.Problem = err.Error()
	}
	return one
}

// SetSecret stores a secret that the caller has encrypted. The fleet takes no value in clear: it would pass through
// NATS.
type SetSecret struct {
	secrets.Name
	Sealed []byte `json:"sealed"` // age ciphertext, in base64
}

// SecretName names a secret.
type SecretName struct {
	secrets.Name
	// Force removes a secret also when workers name it.
	Force bool `json:"force,omitempty"`
}

// set stores a secret. A process that has the key refuses what it cannot open as the secret of that name.
func (s *sealedSecrets) set(ctx context.Context, r SetSecret) (Secret, error) {
	if err := r.Validate(); err != nil {
		return Secret{}, refused("%v", err)
	}
	if len(r.Sealed) == 0 || len(r.Sealed) > secrets.MaxSealed {
		return Secret{}, refused("sealed has %d bytes: it is an age ciphertext of 1 to %d bytes", len(r.Sealed), secrets.MaxSealed)
	}
	if s.identities != nil {
		if _, err := s.identities.Open(r.Name, r.Sealed); err != nil {
			return Secret{}, refused("%v", err)
		}
	}
	return Secret{Name: r.Name, Set: time.Now().UTC()}, s.store.Put(ctx, r.Name, r.Sealed)
}

// remove removes a secret, unless the active version of a worker needs it.
func (s *sealedSecrets) remove(ctx context.Context, r SecretName) (Secret, error) {
	if err := r.Validate(); err != nil {
		return Secret{}, refused("%v", err)
	}
	if !r.Force {
		users, err := s.workers.SecretUsers(ctx, s.store, r.Name)
		if err != nil {
			return Secret{}, err
		}
		if len(users) > 0 {
			return Secret{}, &Error{Code: http.StatusConflict, Text: InUse(r.Name, users)}
		}
	}
	return Secret{Name: r.Name}, s.store.Remove(ctx, r.Name)
}

// InUse is why a secret is not removed.
func InUse(n secrets.Name, users []string) string {
	return "secret " + n.String() + " is named by " + strings.Join(users, ", ") + ": their events would fail without it"
}

// Rotate names the process that encrypts all secrets again.
type Rotate struct {
	ID string `json:"id"` // as secrets.keys tells it
}

// Rotated is how far a rotation has got.
type Rotated struct {
	Recipient string   `json:"recipient"`        // all secrets are encrypted to this one, and to no other
	Rotated   int      `json:"rotated"`          // encrypted again by this request
	Already   int      `json:"already"`          // were so before
	Failed    []string `json:"failed,omitempty"` // why others are not, at most 20
	More      bool     `json:"more"`             // the request has run out of time: ask again
}

// rotateTime is how long a request for a rotation works. It leaves time for the answer.
const rotateTime = requestTimeout / 2

// rotate encrypts the secrets of all owners to this process's first identity. Contexts do not change, because
// the values do not.
func (s *sealedSecrets) rotate(ctx context.Context, r Rotate) (Rotated, error) {
	if r.ID == "" {
		return Rotated{}, refused("which process? Name its id, as secrets.keys tells it")
	}
	if self, _, _ := s.process.Members(); self.ID != r.ID {
		return Rotated{}, errNotMeant
	}
	ids := s.identities
	if ids == nil {
		return Rotated{}, refused("process %s has no PINWHEEL_SECRETS_KEY", r.ID)
	}
	all, err := s.store.List(ctx, "")
	if err != nil {
		return Rotated{}, err
	}
	done, until := Rotated{Recipient: ids.Recipient()}, time.Now().Add(rotateTime)
	for _, one := range all {
		if time.Now().After(until) {
			done.More = true
			break
		}
		if ids.Newest(one.Sealed) {
			done.Already++
		} else if replaced, err := s.renew(ctx, one); err != nil {
			if len(done.Failed) < 20 {
				done.Failed = append(done.Failed, err.Error())
			}
		} else if replaced {
			done.Rotated++
		} else {
			done.More = true // it was set meanwhile, perhaps to the old recipient
		}
	}
	return done, nil
}

// renew encrypts one again. It returns false if it was set meanwhile.
func (s *sealedSecrets) renew(ctx context.Context, one deploy.StoredSecret) (bool, error) {
	value, err := s.identities.Open(one.Name, one.Sealed)
	if err != nil {
		return false, err
	}
	sealed, err := secrets.Seal(one.Name, value, s.identities.Recipient())
	if err != nil {
		return false, err
	}
	return s.store.Replace(ctx, one, sealed)
}

// keysWait is how long SecretKeys waits for processes that another process has named.
const keysWait = time.Second

// SecretKeys asks all processes of the fleet for their recipients. missing are processes that others know and that have
// not answered: they may be of an older release. nats.ErrNoResponders means that no process answers.
func (c *Client) SecretKeys(ctx context.Context) (answers []SecretKeys, missing []Member, err error) {
	return askEach[SecretKeys](ctx, c, "secrets.keys", None{}, keysWait)
}

func (k SecretKeys) from() (self Member, known []Member, left []string) {
	return k.Member, k.Processes, k.Left
}
