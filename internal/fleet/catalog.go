package fleet

import (
	"sync"
	"sync/atomic"

	"github.com/pinwheel-run/pinwheel/events"
)

// Catalog has the workers that this process runs, each with its active version. All code that needs the active version
// asks the catalog. The zero value is empty. Several goroutines may call its methods.
type Catalog struct {
	mu      sync.RWMutex
	workers map[workerName]installed

	// idempotent is the number of idempotent workers. While it is 0, Idempotent costs one load.
	idempotent atomic.Int64
}

type workerName struct{ owner, name string }

// installed is the catalog entry of a worker.
type installed struct {
	active *events.Worker // nil: the first version is being installed
	next   *events.Worker // the version that is being installed, or nil
}

func (i installed) idempotent() bool {
	return i.active != nil && i.active.Idempotent || i.next != nil && i.next.Idempotent
}

// Begin records that the installation of w has begun: events may run in it from now on.
func (c *Catalog) Begin(w *events.Worker) {
	c.change(workerName{w.Owner, w.Name}, func(i *installed) { i.next = w })
}

// Install records that w is the active version: every event finds it.
func (c *Catalog) Install(w *events.Worker) {
	c.change(workerName{w.Owner, w.Name}, func(i *installed) { *i = installed{active: w} })
}

// Remove removes a worker.
func (c *Catalog) Remove(owner, name string) {
	c.change(workerName{owner, name}, func(i *installed) { *i = installed{} })
}

// change changes the entry of a worker.
func (c *Catalog) change(name workerName, f func(*installed)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.workers[name]
	after := before
	f(&after)
	if after == (installed{}) {
		delete(c.workers, name)
	} else {
		if c.workers == nil {
			c.workers = map[workerName]installed{}
		}
		c.workers[name] = after
	}
	switch {
	case after.idempotent() && !before.idempotent():
		c.idempotent.Add(1)
	case !after.idempotent() && before.idempotent():
		c.idempotent.Add(-1)
	}
}

func (c *Catalog) get(owner, name string) installed {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.workers[workerName{owner, name}]
}

// Active returns the active version of a worker, or nil.
func (c *Catalog) Active(owner, name string) *events.Worker { return c.get(owner, name).active }

// Idempotent reports whether events of a worker may run in an idempotent version. It is called for each event.
func (c *Catalog) Idempotent(owner, name string) bool {
	return c.idempotent.Load() > 0 && c.get(owner, name).idempotent()
}
