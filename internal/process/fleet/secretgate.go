package fleet

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/events/workers/catalog"
)

// secretGate is an Installer that holds a deployment back while this process cannot open the secrets that its versions
// name: the deployment before it goes on here. What was stored when the process started is installed in any case,
// because there is nothing before it to go on with. Events of such a version fail, and run again, until the secrets are
// there.
type secretGate struct {
	to     *catalog.Catalog
	values *secretValues
	ready  <-chan struct{} // closed when all that was stored at the start is installed
	log    zerolog.Logger

	mu   sync.Mutex                          // also held during calls of to, which come from two goroutines
	held map[workerName]workers.Installation // what waits, the newest of each worker
}

type workerName struct{ owner, name string }

// secretKeeper has the secrets of a process: as they are stored, and as it could open them.
type secretKeeper struct {
	bucket *deploy.Secrets
	values *secretValues // of bucket
	gate   *secretGate
}

// follow opens the secrets of the bucket until ctx is done.
func (k *secretKeeper) follow(ctx context.Context) { k.bucket.Watch(ctx, k.values) }

// guard puts the gate before the catalog. renew ends the contexts of a worker.
func (k *secretKeeper) guard(to *catalog.Catalog, renew func(owner, worker string), log zerolog.Logger) {
	k.gate = newSecretGate(to, k.values, log)
	k.values.renewed, k.values.changed = renew, k.gate.retry
}

func newSecretGate(to *catalog.Catalog, values *secretValues, log zerolog.Logger) *secretGate {
	return &secretGate{to: to, values: values, log: log, held: map[workerName]workers.Installation{}}
}

func (g *secretGate) started() bool {
	select {
	case <-g.ready:
		return true
	default:
		return false
	}
}

// lacks returns why an active version of in cannot run, or nil.
func (g *secretGate) lacks(in workers.Installation) error {
	for _, s := range in.Deployment.Split {
		if w := in.Version(s.Version); w != nil {
			if err := g.values.check(w); err != nil {
				return fmt.Errorf("version %s: %w", w.Version, err)
			}
		}
	}
	return nil
}

// Install installs in now, or when its secrets can be opened.
func (g *secretGate) Install(in workers.Installation) {
	g.mu.Lock()
	defer g.mu.Unlock()
	err := g.lacks(in)
	delete(g.held, workerName{in.Owner, in.Name})
	if err == nil {
		g.to.Install(in)
		return
	}
	entry := g.log.Error().Err(err).Str("owner", in.Owner).Str("worker", in.Name).Int("deployment", in.Deployment.Number)
	if !g.started() {
		g.to.Install(in)
		entry.Msg("events of this worker fail here until its secrets can be opened")
		return
	}
	g.held[workerName{in.Owner, in.Name}] = in
	entry.Msg("this deployment does not take effect until its secrets can be opened; keeping the previous one")
}

// Remove removes a worker.
func (g *secretGate) Remove(owner, name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.held, workerName{owner, name})
	g.to.Remove(owner, name)
	g.values.forget(owner, name)
}

// retry installs what waited of an owner's workers and need not wait any more.
func (g *secretGate) retry(owner string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for name, in := range g.held {
		if name.owner == owner && g.lacks(in) == nil {
			delete(g.held, name)
			g.log.Info().Str("owner", in.Owner).Str("worker", in.Name).Int("deployment", in.Deployment.Number).
				Msg("the secrets are there: this deployment takes effect")
			g.to.Install(in)
		}
	}
}

// waiting says which workers wait for their secrets, at most mostBroken.
func (g *secretGate) waiting() (list []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for name, in := range g.held {
		list = append(list, fmt.Sprintf("deployment %d of %s/%s is not in effect: %v", in.Deployment.Number, name.owner, name.name,
			g.lacks(in)))
	}
	for _, in := range g.to.All() {
		if err := g.lacks(*in); err != nil {
			list = append(list, fmt.Sprintf("events of %s/%s fail: %v", in.Owner, in.Name, err))
		}
	}
	slices.Sort(list)
	return list[:min(len(list), mostBroken)]
}

// stats is what the process tells of secrets.
func (g *secretGate) stats() SecretStats {
	st := g.values.stats()
	st.Held = g.waiting()
	return st
}
