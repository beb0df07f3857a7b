package bindings

import (
	"errors"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

// secretsError is the error of a worker whose secrets are not all known.
type secretsError struct{ error }

// Unwrap is the error of the look-up.
func (e secretsError) Unwrap() error { return e.error }

// SecretsOf returns the values of the secrets that w names, or nil when it names none. Without all of them a worker
// does not run: with undefined in place of a key, a check of a signature could pass. A check before a deploy has
// placeholders.
func SecretsOf(w *workers.Worker, lookUp func(*workers.Worker) (*Secrets, error), checks bool) (*Secrets, error) {
	if len(w.Secrets) == 0 {
		return nil, nil
	}
	if checks {
		return placeholders(w), nil
	}
	if lookUp == nil {
		return nil, secretsError{errors.New("this process has no secrets, and " + w.Target() + " names some")}
	}
	s, err := lookUp(w)
	if err != nil {
		return nil, secretsError{err}
	}
	return s, nil
}

// placeholder is the value of each secret while a module is checked before its deploy: a module may insist on having
// one when it is loaded.
const placeholder = "placeholder-of-a-secret"

func placeholders(w *workers.Worker) *Secrets {
	values := map[string]string{}
	for _, name := range w.Secrets {
		values[name] = placeholder
	}
	return NewSecrets(values)
}

// Lacks reports whether an error is that not all secrets of a worker are known.
func Lacks(err error) bool { return errors.As(err, &secretsError{}) }
