package isolates

import (
	"errors"
	"slices"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// secretsError is the error of a worker whose secrets are not all known.
type secretsError struct{ error }

// Unwrap is the error that Config.Secrets returned.
func (e secretsError) Unwrap() error { return e.error }

// secretsOf returns the values of the secrets that w names, or nil when it names none. Without all of them a worker
// does not run: with undefined in place of a key, a check of a signature could pass.
func secretsOf(w *workers.Worker, p *Pool) (*Secrets, error) {
	if len(w.Secrets) == 0 {
		return nil, nil
	}
	if p.checks {
		return placeholders(w), nil
	}
	if p.cfg.Secrets == nil {
		return nil, secretsError{errors.New("this process has no secrets, and " + w.Target() + " names some")}
	}
	s, err := p.cfg.Secrets(w)
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

// reasonOf is the reason of an event for which no context could be made. Missing secrets are like an error at the
// beginning of the module: the event runs again later, and is kept when that does not help.
func reasonOf(err error) events.Reason {
	if errors.As(err, &secretsError{}) {
		return events.ReasonException
	}
	return events.ReasonMemory
}

// Renew ends the contexts of a worker whose secrets were replaced. Those in which an event runs end after it.
// No event begins in one of them, also before Renew. Any goroutine may call it.
func (p *Pool) Renew(owner, name string) {
	endContexts(p, owner, name, discardSecrets, func(jc *jsContext) bool { return jc.secrets.Replaced() })
}

// Reset ends all contexts that a pool has of a worker, of every version. Those in which an event runs end after it, and
// no other event begins in them. Any goroutine may call it; it does not wait for the threads.
func Reset(p *Pool, owner, name string) {
	endContexts(p, owner, name, discardReset, func(jc *jsContext) bool {
		jc.reset = true
		return true
	})
}

// endContexts ends the contexts of a worker for which ends, which their threads call, returns true: those in which
// nothing runs now, the persistent ones as soon as nothing runs in them. What runs an event is outdated from then on.
func endContexts(p *Pool, owner, name, why string, ends func(*jsContext) bool) {
	p.affinity.each(owner, name, func(t *thread, jc *jsContext) {
		if ends(jc) {
			t.persistents.retire(jc, why)
		}
	})
	tenant := p.policies.tenant(owner)
	for i := range p.threads {
		p.threads[i].Load().post(func(t *thread) {
			if i == 0 {
				t.heaps.borrowAll(tenant)
			}
			of := slices.DeleteFunc(slices.Clone(t.heaps.contexts.of(owner, name)),
				func(jc *jsContext) bool { return !ends(jc) })
			t.heaps.dropContexts(of, why, func(*jsContext) bool { return true })
		})
	}
}
