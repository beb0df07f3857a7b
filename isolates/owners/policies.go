// Package owners knows what each owner may have: its policy, and what its persistent contexts may take between events.
package owners

import (
	"strings"
	"sync"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

// Policies knows what owners may have, and which of them share isolates. Any goroutine may use it. Its zero
// value knows nothing.
type Policies struct {
	owners sync.Map // of entries, by owner

	mu     sync.Mutex        // held to change anything
	groups map[string]*group // by tenant
}

// entry is an owner with a policy.
type entry struct {
	policy workers.Policy
	tenant string // who shares its isolates
	group  *group // nil unless it is in one
}

// group is the owners of a trust group, in the same cell and with the same compilers and WebAssembly or none,
// that this process knows.
type group struct {
	mu      sync.Mutex
	members map[string]workers.Policy
	most    workers.Policy // the largest shares of members; 0 = none has one of its own
}

// What the names of tenants end with: those whose code V8 does not optimize, and those that have WebAssembly,
// for which V8 needs all compilers. No owner or group has such a name.
const (
	baseline = ":baseline"
	wasm     = ":wasm"
)

// Optimizes reports whether V8 may optimize the code of a tenant.
func Optimizes(tenant string) bool { return !strings.HasSuffix(tenant, baseline) }

// WASM reports whether the code of a tenant may have modules of WebAssembly.
func WASM(tenant string) bool { return strings.HasSuffix(tenant, wasm) }

// tenantOf returns the tenant of an owner with that policy. Owners of a group that have other compilers, or
// WebAssembly, or are in another cell, are another tenant: no isolate ever has to change what it may have, or
// its process. No owner has the name of a group's tenant.
func tenantOf(owner string, p workers.Policy) string {
	tenant := owner
	if p.Group != "" {
		tenant = "@" + p.Group
		if cell := p.Cell.OrOf(""); cell != workers.CellShared {
			tenant += "/" + string(cell) // no name has that
		}
	}
	switch {
	case p.Compilers.OrDefault() != workers.CompilersFull:
		return tenant + baseline
	case p.WASM:
		return tenant + wasm
	}
	return tenant
}

// Set sets what an owner may have from now on. The zero Policy means the configuration. Where a process has owners of
// several cells, the caller puts the fleet's cell into policies that have none.
func (s *Policies) Set(owner string, policy workers.Policy) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := &entry{policy: policy, tenant: tenantOf(owner, policy)}
	if old := s.of(owner); old != nil && old.group != nil && old.tenant != e.tenant {
		old.group.set(owner, nil)
		if old.group.empty() {
			delete(s.groups, old.tenant)
		}
	}
	if policy.IsZero() {
		s.owners.Delete(owner)
		return
	}
	if policy.Group != "" {
		if s.groups == nil {
			s.groups = map[string]*group{}
		}
		if s.groups[e.tenant] == nil {
			s.groups[e.tenant] = &group{members: map[string]workers.Policy{}}
		}
		e.group = s.groups[e.tenant]
		e.group.set(owner, &policy)
	}
	s.owners.Store(owner, e)
}

// of returns nil for an owner without a policy.
func (s *Policies) of(owner string) *entry {
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

// Tenant returns who shares isolates with an owner: the owners of its group in the same cell and with the same
// compilers, or itself alone.
func (s *Policies) Tenant(owner string) string {
	if e := s.of(owner); e != nil {
		return e.tenant
	}
	return owner
}

// Known reports whether an owner has a policy.
func (s *Policies) Known(owner string) bool { return s.of(owner) != nil }

// Groups returns how many groups have members.
func (s *Policies) Groups() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.groups)
}

// Limits returns the limits of a worker, within what its owner may have now.
func (s *Policies) Limits(w *workers.Worker) workers.Limits {
	if e := s.of(w.Owner); e != nil {
		return w.Limits.Within(e.policy.Ceilings)
	}
	return w.Limits.OrDefault()
}

// Share returns how many isolates, and bytes in them, an owner may have: those given, unless its policy says
// otherwise. A group has the largest share of its members that have the same cell and compilers.
func (s *Policies) Share(owner string, isolates, bytes int64) (int64, int64) {
	e := s.of(owner)
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
