package isolates

import (
	"sync"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

// policies knows what owners may have, and which of them share isolates. Any goroutine may use it. Its zero value knows
// nothing.
type policies struct {
	owners sync.Map // of entries, by owner

	mu     sync.Mutex // held to change anything
	groups map[string]*group
}

// entry is an owner with a policy.
type entry struct {
	policy workers.Policy
	tenant string // who shares its isolates
	group  *group // nil unless it is in one
}

// group is the owners of a trust group that this process knows.
type group struct {
	mu      sync.Mutex
	members map[string]workers.Policy
	most    workers.Policy // the largest shares of members; 0 = none has one of its own
}

// tenantOf returns the tenant of a group. No owner has such a name.
func tenantOf(group string) string { return "@" + group }

// SetPolicy sets what an owner may have from now on. The zero Policy means the configuration. The pool uses only a
// policy's shares of isolates and heap, its ceilings of limits, and its group. An owner whose group changes leaves what
// it has in isolates of others: runs that have begun end there. Any goroutine may call it.
func (p *Pool) SetPolicy(owner string, policy workers.Policy) {
	before := p.policies.tenant(owner)
	p.policies.set(owner, policy)
	if before != p.policies.tenant(owner) {
		p.leave(owner, before)
	}
	p.wakeHungry()
}

func (s *policies) set(owner string, policy workers.Policy) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.of(owner); old != nil && old.group != nil && old.policy.Group != policy.Group {
		old.group.set(owner, nil)
		if old.group.empty() {
			delete(s.groups, old.policy.Group)
		}
	}
	if policy.IsZero() {
		s.owners.Delete(owner)
		return
	}
	e := &entry{policy: policy, tenant: owner}
	if name := policy.Group; name != "" {
		if s.groups == nil {
			s.groups = map[string]*group{}
		}
		if s.groups[name] == nil {
			s.groups[name] = &group{members: map[string]workers.Policy{}}
		}
		e.tenant, e.group = tenantOf(name), s.groups[name]
		e.group.set(owner, &policy)
	}
	s.owners.Store(owner, e)
}

// of returns nil for an owner without a policy.
func (s *policies) of(owner string) *entry {
	e, _ := s.owners.Load(owner)
	known, _ := e.(*entry)
	return known
}

// set records a member with its policy, or without one that it has left.
func (g *group) set(owner string, policy *workers.Policy) {
	g.mu.Lock()
	defer g.mu.Unlock()
	old, now := g.members[owner], workers.Policy{}
	delete(g.members, owner)
	if policy != nil {
		now = *policy
		g.members[owner] = now
	}
	// Only one that had the largest share, and has less now, lowers it.
	if old.MaxIsolates == g.most.MaxIsolates && now.MaxIsolates < old.MaxIsolates || old.HeapMB == g.most.HeapMB &&
		now.HeapMB < old.HeapMB {
		g.most = workers.Policy{}
		for _, m := range g.members {
			g.raise(m)
		}
	}
	g.raise(now)
}

func (g *group) raise(p workers.Policy) {
	g.most.MaxIsolates, g.most.HeapMB = max(g.most.MaxIsolates, p.MaxIsolates), max(g.most.HeapMB, p.HeapMB)
}

func (g *group) empty() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.members) == 0
}

func (g *group) shares() workers.Policy {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.most
}

// tenant returns who shares isolates with an owner: its group, or the owner alone.
func (s *policies) tenant(owner string) string {
	if e := s.of(owner); e != nil {
		return e.tenant
	}
	return owner
}

// limits returns the limits of a worker, within what its owner may have now.
func (p *Pool) limits(w *workers.Worker) workers.Limits {
	if e := p.policies.of(w.Owner); e != nil {
		return w.Limits.Within(e.policy.Ceilings)
	}
	return w.Limits.OrDefault()
}

// share returns how many isolates, and bytes in them, an owner may have. A group has the largest share of its members.
func (p *Pool) share(owner string) (isolates, bytes int64) {
	isolates, bytes = int64(p.cfg.OwnerMaxIsolates), int64(p.cfg.OwnerHeapMB)<<20
	e := p.policies.of(owner)
	if e == nil {
		return isolates, bytes
	}
	most := e.policy
	if e.group != nil {
		most = e.group.shares()
	}
	if most.MaxIsolates > 0 {
		isolates = int64(most.MaxIsolates)
	}
	if most.HeapMB > 0 {
		bytes = int64(most.HeapMB) << 20
	}
	return isolates, bytes
}

// leave closes the contexts that an owner has in isolates of a tenant that it does not belong to any more. Those in
// which something runs end after it: no further event finds them.
func (p *Pool) leave(owner, tenant string) {
	p.affinity.each(owner, "", func(t *thread, jc *jsContext) { t.persistents.retire(jc, discardOther) })
	for i := range p.threads {
		t := p.threads[i].Load()
		if t == nil {
			continue // not opened yet
		}
		t.post(func(t *thread) {
			if i == 0 {
				t.heaps.borrowAll(tenant)
			}
			t.heaps.vacate(tenant, discardOther, contextsOf(owner, t.heaps.isolates[tenant]))
		})
	}
}
