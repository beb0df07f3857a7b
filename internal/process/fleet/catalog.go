package fleet

import (
	"sync"
	"sync/atomic"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

// Catalog has the workers that this process runs, each with its versions and its deployment. All code that needs the
// active version asks the catalog. The zero value is empty. Several goroutines may call its methods.
type Catalog struct {
	mu      sync.RWMutex
	workers map[workerName]installed

	// idempotent is the number of workers of which events may run in an idempotent version. While it is 0, Idempotent
	// costs one load.
	idempotent atomic.Int64
	// rollouts is the number of workers whose deployment is being rolled out.
	rollouts atomic.Int64
}

type workerName struct{ owner, name string }

// installed is the catalog entry of a worker.
type installed struct {
	now  *workers.Installation // nil: the first one is being installed
	next *workers.Installation // what is being installed, or nil
}

func (i installed) idempotent() bool { return idempotent(i.now) || idempotent(i.next) }

func (i installed) rollout() bool { return i.now != nil && i.now.Deployment.Rollout.Running() }

// idempotent reports whether an active version is idempotent.
func idempotent(in *workers.Installation) bool {
	if in == nil {
		return false
	}
	for _, s := range in.Deployment.Runs() {
		if w := in.Version(s.Version); w != nil && w.Idempotent {
			return true
		}
	}
	return false
}

// Begin records that the installation of in has begun: events may run in its versions from now on.
func (c *Catalog) Begin(in workers.Installation) {
	c.change(workerName{in.Owner, in.Name}, func(i *installed) { i.next = &in })
}

// Install records that in is installed: every event finds it.
func (c *Catalog) Install(in workers.Installation) {
	c.change(workerName{in.Owner, in.Name}, func(i *installed) { *i = installed{now: &in} })
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
	c.idempotent.Add(one(after.idempotent()) - one(before.idempotent()))
	c.rollouts.Add(one(after.rollout()) - one(before.rollout()))
}

func one(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func (c *Catalog) get(owner, name string) installed {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.workers[workerName{owner, name}]
}

// Installed returns what is installed of a worker. ok is false when there is nothing.
func (c *Catalog) Installed(owner, name string) (in workers.Installation, ok bool) {
	if i := c.get(owner, name); i.now != nil {
		return *i.now, true
	}
	return workers.Installation{}, false
}

// All returns what is installed of all workers, in any order. The lock is held only to copy pointers: nothing may
// change what they point to.
func (c *Catalog) All() []*workers.Installation {
	c.mu.RLock()
	defer c.mu.RUnlock()
	list := make([]*workers.Installation, 0, len(c.workers))
	for _, i := range c.workers {
		if i.now != nil {
			list = append(list, i.now)
		}
	}
	return list
}

// Rollouts returns the workers whose deployment is being rolled out.
func (c *Catalog) Rollouts() (list []workers.Installation) {
	if c.rollouts.Load() == 0 {
		return nil
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, i := range c.workers {
		if i.rollout() {
			list = append(list, *i.now)
		}
	}
	return list
}

// Idempotent reports whether events of a worker may run in an idempotent version. It is called for each event.
func (c *Catalog) Idempotent(owner, name string) bool {
	return c.idempotent.Load() > 0 && c.get(owner, name).idempotent()
}
