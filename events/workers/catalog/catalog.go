// Package catalog has the active versions of workers and the policies of owners in a process, for all rooms that ask
// for them.
package catalog

import (
	"iter"
	"sync"
	"sync/atomic"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

// Catalog has the workers that a process runs, each with its versions and its deployment, and the policies of owners.
// Rooms that need one of them ask the catalog and keep no copy; a room that derives state from them is a Follower. The
// zero value is empty. Any goroutine may call its methods. Lookups take no lock. Nothing may change what they return.
type Catalog struct {
	entries sync.Map // *entry by target
	owners  sync.Map // *owner by name

	// installed is the number of entries. idempotent is how many of them have events that may run in an idempotent
	// version: while it is 0, Idempotent costs one load. rollouts is how many are being rolled out.
	installed, idempotent, rollouts atomic.Int64

	mu        sync.Mutex // held while something changes, so that followers see one change at a time
	followers []Follower
}

type target struct{ owner, name string }

// entry is what the catalog has of a worker. It is replaced, never changed.
type entry struct {
	now  *workers.Installation // nil: the first one is being installed
	next *workers.Installation // what is being installed, or nil
	once bool                  // events may run in an idempotent version
}

// owner is what the catalog has of an owner. It is replaced, never changed.
type owner struct {
	policy  *workers.Policy // nil: it has none
	workers int
}

// Follower derives state from what a Catalog has. The catalog calls the fields that are not nil, one call at a time.
// They must not block, and may look things up in the catalog, but must not change it.
type Follower struct {
	// Installing gets an installation before lookups find it, and Installed when they do. So what runs events has a
	// version before anything sends it events because of the catalog.
	Installing, Installed func(in workers.Installation)
	// Removing is called while lookups still find a worker, and Removed when they do not.
	Removing, Removed func(owner, name string)
	// PolicySet gets the policy that lookups find from now on. The zero Policy is none.
	PolicySet func(owner string, p workers.Policy)
}

// Follow adds followers. Of each change they are told in the order in which they were added. They are not told of what
// the catalog has already.
func (c *Catalog) Follow(all ...Follower) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.followers = append(c.followers, all...)
}

// Install replaces what the catalog has of a worker. While the followers install it, events may run in its versions and
// in those before.
func (c *Catalog) Install(in workers.Installation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := target{in.Owner, in.Name}
	c.set(t, entry{now: c.entry(t).now, next: &in})
	for _, f := range c.followers {
		if f.Installing != nil {
			f.Installing(in)
		}
	}
	c.set(t, entry{now: &in})
	for _, f := range c.followers {
		if f.Installed != nil {
			f.Installed(in)
		}
	}
}

// Remove removes a worker.
func (c *Catalog) Remove(owner, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.followers {
		if f.Removing != nil {
			f.Removing(owner, name)
		}
	}
	c.set(target{owner, name}, entry{})
	for _, f := range c.followers {
		if f.Removed != nil {
			f.Removed(owner, name)
		}
	}
}

// SetPolicy sets the policy of an owner. The zero Policy removes it.
func (c *Catalog) SetPolicy(name string, p workers.Policy) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.owner(name)
	if o.policy = &p; p.IsZero() {
		o.policy = nil
	}
	c.setOwner(name, o)
	for _, f := range c.followers {
		if f.PolicySet != nil {
			f.PolicySet(name, p)
		}
	}
}

// set replaces the entry of a worker; the zero entry is none. mu must be held.
func (c *Catalog) set(t target, e entry) {
	before := c.entry(t)
	if e.once = idempotent(e.now) || idempotent(e.next); e == (entry{}) {
		c.entries.Delete(t)
	} else {
		c.entries.Store(t, &e)
	}
	c.idempotent.Add(one(e.once) - one(before.once))
	c.rollouts.Add(one(e.rollout()) - one(before.rollout()))
	if more := one(e != entry{}) - one(before != entry{}); more != 0 {
		c.installed.Add(more)
		o := c.owner(t.owner)
		o.workers += int(more)
		c.setOwner(t.owner, o)
	}
}

func (c *Catalog) setOwner(name string, o owner) {
	if o == (owner{}) {
		c.owners.Delete(name)
	} else {
		c.owners.Store(name, &o)
	}
}

func (c *Catalog) entry(t target) entry {
	if e, ok := c.entries.Load(t); ok {
		return *e.(*entry)
	}
	return entry{}
}

func (c *Catalog) owner(name string) owner {
	if o, ok := c.owners.Load(name); ok {
		return *o.(*owner)
	}
	return owner{}
}

// Installed returns what is installed of a worker. ok is false when there is nothing.
func (c *Catalog) Installed(owner, name string) (in workers.Installation, ok bool) {
	if e := c.entry(target{owner, name}); e.now != nil {
		return *e.now, true
	}
	return workers.Installation{}, false
}

// All returns what is installed of all workers, in any order.
func (c *Catalog) All() []*workers.Installation {
	list := make([]*workers.Installation, 0, c.installed.Load())
	for _, e := range c.entries.Range {
		if now := e.(*entry).now; now != nil {
			list = append(list, now)
		}
	}
	return list
}

// Rollouts returns the workers whose deployment is being rolled out.
func (c *Catalog) Rollouts() (list []workers.Installation) {
	if c.rollouts.Load() == 0 {
		return nil
	}
	for _, e := range c.entries.Range {
		if e := e.(*entry); e.rollout() {
			list = append(list, *e.now)
		}
	}
	return list
}

// Idempotent reports whether events of a worker may run in an idempotent version. It is called for each event.
func (c *Catalog) Idempotent(owner, name string) bool {
	return c.idempotent.Load() > 0 && c.entry(target{owner, name}).once
}

// Empty reports whether no owner has workers.
func (c *Catalog) Empty() bool { return c.installed.Load() == 0 }

// HasWorkers reports whether an owner has workers.
func (c *Catalog) HasWorkers(name string) bool { return c.owner(name).workers > 0 }

// Owners are the owners that have workers, in any order.
func (c *Catalog) Owners() iter.Seq[string] {
	return func(yield func(string) bool) {
		for name, o := range c.owners.Range {
			if o.(*owner).workers > 0 && !yield(name.(string)) {
				return
			}
		}
	}
}

// noPolicy is the policy of owners without one.
var noPolicy workers.Policy

// Policy returns the policy of an owner. It is another pointer after each change.
func (c *Catalog) Policy(name string) *workers.Policy {
	if o := c.owner(name); o.policy != nil {
		return o.policy
	}
	return &noPolicy
}

// Paused is how many owners and workers are paused.
func (c *Catalog) Paused() (n int) {
	for _, p := range c.Policies() {
		n += len(p.Paused)
	}
	return n
}

// Policies returns the policies by owner.
func (c *Catalog) Policies() map[string]*workers.Policy {
	all := map[string]*workers.Policy{}
	for name, o := range c.owners.Range {
		if p := o.(*owner).policy; p != nil {
			all[name.(string)] = p
		}
	}
	return all
}

func (e entry) rollout() bool { return e.now != nil && e.now.Deployment.Rollout.Running() }

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

func one(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
