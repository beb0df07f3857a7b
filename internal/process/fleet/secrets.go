package fleet

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/env/secrets"
	"github.com/pinwheel-run/pinwheel/isolates"
)

// secretValues has the values of the secrets that this process can open, and gives them to contexts. It is the follower
// of the bucket of secrets. The values exist only here and in contexts. Several goroutines may call its methods.
type secretValues struct {
	ids *secrets.Identities // nil: this process has no key
	log zerolog.Logger
	// renewed is called, without the lock, after the values for a worker were replaced. Its contexts should end.
	renewed func(owner, worker string)
	// changed is called, without the lock, after something changed for an owner.
	changed func(owner string)

	ready     chan struct{} // closed when all secrets have come that were stored at the start
	readyOnce sync.Once

	mu     sync.Mutex
	stored map[secrets.Name]storedSecret
	given  map[workerName][]givenSecrets
}

// storedSecret is what is known of a secret that is stored.
type storedSecret struct {
	value secrets.Value // of the newest ciphertext that could be opened; "" = none could
	err   error         // why the newest ciphertext cannot be opened
}

// givenSecrets is what contexts of a worker have got for these names.
type givenSecrets struct {
	names  []string
	values map[string]secrets.Value
	to     *isolates.Secrets
}

func newSecretValues(ids *secrets.Identities, log zerolog.Logger) *secretValues {
	return &secretValues{
		ids: ids, log: log, renewed: func(string, string) {}, changed: func(string) {}, ready: make(chan struct{}),
		stored: map[secrets.Name]storedSecret{}, given: map[workerName][]givenSecrets{},
	}
}

// errNoKey is why a process without PINWHEEL_SECRETS_KEY opens nothing.
var errNoKey = errors.New("this process has no PINWHEEL_SECRETS_KEY")

// Stored is part of deploy.SecretFollower. When the new ciphertext cannot be opened, the value before it goes on: not
// everybody who can damage an entry may stop a worker.
func (s *secretValues) Stored(n secrets.Name, sealed []byte) {
	value, err := secrets.Value(""), fmt.Errorf("secret %s: %w", n, errNoKey)
	if s.ids != nil {
		value, err = s.ids.Open(n, sealed)
	}
	s.set(n, func(was storedSecret) (storedSecret, bool) {
		if err != nil {
			value = was.value
		}
		return storedSecret{value, err}, true
	})
	if err != nil && !errors.Is(err, errNoKey) {
		s.log.Error().Err(err).Msg("a secret cannot be opened: workers that have a value of it go on with that")
	}
}

// Removed is part of deploy.SecretFollower.
func (s *secretValues) Removed(n secrets.Name) {
	s.set(n, func(storedSecret) (storedSecret, bool) { return storedSecret{}, false })
}

// Settled is part of deploy.SecretFollower.
func (s *secretValues) Settled() { s.readyOnce.Do(func() { close(s.ready) }) }

// set changes what is known of a secret, and replaces what contexts have got with another value of it.
func (s *secretValues) set(n secrets.Name, change func(storedSecret) (storedSecret, bool)) {
	s.mu.Lock()
	if now, there := change(s.stored[n]); there {
		s.stored[n] = now
	} else {
		delete(s.stored, n)
	}
	var renew []workerName
	for w, list := range s.given {
		if w.owner != n.Owner || n.Worker != "" && w.name != n.Worker {
			continue
		}
		s.given[w] = slices.DeleteFunc(list, func(g givenSecrets) bool {
			now, err := s.resolve(w, g.names)
			if err == nil && sameValues(now, g.values) {
				return false
			}
			g.to.Replace()
			renew = append(renew, w)
			return true
		})
	}
	s.mu.Unlock()
	for _, w := range renew {
		s.log.Info().Str("owner", w.owner).Str("worker", w.name).Str("secret", n.Name).
			Msg("a secret was changed: the worker gets new contexts")
		s.renewed(w.owner, w.name)
	}
	s.changed(n.Owner)
}

func sameValues(a, b map[string]secrets.Value) bool {
	for name, value := range a {
		if b[name] != value {
			return false
		}
	}
	return len(a) == len(b)
}

// resolve returns the values for a worker. A secret of the worker itself hides one of its owner, also when it cannot be
// opened. The caller holds the lock.
func (s *secretValues) resolve(w workerName, names []string) (map[string]secrets.Value, error) {
	values := make(map[string]secrets.Value, len(names))
	for _, name := range names {
		one, ok := s.stored[secrets.Name{Owner: w.owner, Worker: w.name, Name: name}]
		if !ok {
			one, ok = s.stored[secrets.Name{Owner: w.owner, Name: name}]
		}
		switch {
		case !ok:
			return nil, fmt.Errorf("secret %s of %s/%s is not set", name, w.owner, w.name)
		case one.value == "":
			return nil, one.err
		}
		values[name] = one.value
	}
	return values, nil
}

// Of returns the values of the secrets that w names: the same pointer while they stay the same.
func (s *secretValues) Of(w *workers.Worker) (*isolates.Secrets, error) {
	name := workerName{w.Owner, w.Name}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.given[name] {
		if slices.Equal(g.names, w.Secrets) {
			return g.to, nil
		}
	}
	values, err := s.resolve(name, w.Secrets)
	if err != nil {
		return nil, err
	}
	to := isolates.NewSecrets(values)
	list := append(s.given[name], givenSecrets{w.Secrets, values, to})
	if len(list) > mostGiven {
		list[0].to.Replace()
		list = slices.Delete(list, 0, 1)
	}
	s.given[name] = list
	return to, nil
}

// Secret returns the value of a secret that w names.
func (s *secretValues) Secret(w *workers.Worker, name string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	values, err := s.resolve(workerName{w.Owner, w.Name}, []string{name})
	return string(values[name]), err
}

// check returns why w cannot run, or nil.
func (s *secretValues) check(w *workers.Worker) error {
	if len(w.Secrets) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.resolve(workerName{w.Owner, w.Name}, w.Secrets)
	return err
}

// forget frees what was kept for a worker that was removed. Contexts keep what they have.
func (s *secretValues) forget(owner, worker string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.given[workerName{owner, worker}] {
		g.to.Replace()
	}
	delete(s.given, workerName{owner, worker})
}

// mostGiven bounds what is kept for a worker. Versions that name the same secrets share an entry.
const mostGiven = deploy.History + 6

// mostBroken bounds the list of broken, and the length of an answer.
const mostBroken = 20

// SecretStats is what a process tells of secrets. It has no values.
type SecretStats struct {
	Recipients []string `json:"recipients"` // of the identities that the process has, the one to encrypt to first
	Stored     int      `json:"stored"`     // secrets in the bucket
	// Broken says why secrets cannot be opened, at most 20, and Held which workers wait for theirs.
	Broken []string `json:"broken,omitempty"`
	Held   []string `json:"held,omitempty"`
}

func (s *secretValues) stats() SecretStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := SecretStats{Recipients: []string{}, Stored: len(s.stored)}
	if s.ids == nil {
		return st
	}
	st.Recipients = s.ids.Recipients()
	for _, one := range s.stored {
		if one.err != nil {
			st.Broken = append(st.Broken, one.err.Error())
		}
	}
	slices.SortFunc(st.Broken, strings.Compare)
	st.Broken = st.Broken[:min(len(st.Broken), mostBroken)]
	return st
}

// add adds what another process on this machine tells. The processes have the same key and the same secrets, so the
// lists are those of the process that has more to tell.
func (s *SecretStats) add(o SecretStats) {
	if s.Stored = max(s.Stored, o.Stored); len(o.Recipients) > len(s.Recipients) {
		s.Recipients = o.Recipients
	}
	if len(o.Broken) > len(s.Broken) {
		s.Broken = o.Broken
	}
	if len(o.Held) > len(s.Held) {
		s.Held = o.Held
	}
}
