package cell

import (
	"errors"
	"fmt"
	"sync"

	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/isolates"
)

// given are the workers that the broker gave to the cell, and their secrets. Any goroutine may call the methods.
type given struct {
	mu      sync.RWMutex
	workers map[uint64]*workers.Worker
	numbers map[*workers.Worker]uint64
	secrets map[*workers.Worker]secrets
	modules map[module]*workers.Module // of these workers, each once
}

type module struct{ owner, hash string }

// secrets are those of a worker, or why it has none.
type secrets struct {
	values *isolates.Secrets
	err    error
}

func newGiven() given {
	return given{
		workers: map[uint64]*workers.Worker{},
		numbers: map[*workers.Worker]uint64{},
		secrets: map[*workers.Worker]secrets{},
		modules: map[module]*workers.Module{},
	}
}

func (g *given) add(number uint64, w *workers.Worker) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.workers[number], g.numbers[w] = w, number
	for i, m := range w.Modules {
		k := module{w.Owner, m.Hash}
		if g.modules[k] == nil {
			g.modules[k] = m
		}
		w.Modules[i] = g.modules[k]
	}
}

func (g *given) worker(number uint64) *workers.Worker {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.workers[number]
}

// number returns the number of a worker; 0 = the broker did not give it.
func (g *given) number(w *workers.Worker) uint64 {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.numbers[w]
}

// setSecrets replaces the secrets of a worker.
func (g *given) setSecrets(number uint64, s secrets) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	w := g.workers[number]
	if w == nil {
		return fmt.Errorf("secrets of worker %d, which is not there", number)
	}
	if before := g.secrets[w].values; before != nil {
		before.Replace()
	}
	g.secrets[w] = s
	return nil
}

var errNoSecrets = errors.New("the secrets of the worker have not come")

// Secrets is isolates.Config.Secrets.
func (g *given) Secrets(w *workers.Worker) (*isolates.Secrets, error) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	s, ok := g.secrets[w]
	if !ok {
		return nil, errNoSecrets
	}
	return s.values, s.err
}
