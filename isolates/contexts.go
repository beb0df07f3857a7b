package isolates

import (
	"slices"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

// Other goroutines of the process end contexts here.

// SetPolicy sets what an owner may have from now on. The zero Policy means the configuration. The pool uses only a
// policy's shares of isolates and heap, its ceilings of limits, its group and its compilers. An owner whose group or
// compilers change leaves what it has in its isolates: runs that have begun end there, and idle contexts are closed.
// Any goroutine may call it.
func (p *Pool) SetPolicy(owner string, policy workers.Policy) {
	before := p.policies.Tenant(owner)
	p.policies.Set(owner, policy)
	if before != p.policies.Tenant(owner) {
		p.leaveTenant(owner, before)
	}
	p.wakeWaiting()
}

// CloseContexts has a thread close the contexts of that version of a worker that are its own and in which nothing runs,
// and report when it has none. It keeps persistent ones. Any goroutine may call it.
func (p *Pool) CloseContexts(index int, w *workers.Worker) {
	tenant := p.policies.Tenant(w.Owner)
	p.threads[index].Load().post(func(t *thread) {
		of := slices.DeleteFunc(slices.Clone(t.heaps.contexts.of(w.Owner, w.Name)), func(jc *jsContext) bool {
			return !sameVersion(jc.worker, w)
		})
		t.heaps.dropIdle(tenant, discardUnneeded, of)
		if len(of) == 0 {
			t.heaps.closed = append(t.heaps.closed, w)
		}
	})
}

// Retire ends the contexts of a worker that was removed. Persistent contexts end as soon as nothing runs in them.
// Others end if nothing runs in them now. Any goroutine may call it.
func (p *Pool) Retire(owner, name string) {
	eachPersistent(&p.affinity, owner, name, func(s *persistents, jc *jsContext) { s.retire(jc, discardRemoved) })
	tenant := p.policies.Tenant(owner)
	for i := range p.threads {
		p.threads[i].Load().post(func(t *thread) {
			if i == 0 {
				t.heaps.borrowAll(tenant)
			}
			t.heaps.dropIdle(tenant, discardRemoved, t.heaps.contexts.of(owner, name))
		})
	}
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
	eachPersistent(&p.affinity, owner, name, func(s *persistents, jc *jsContext) {
		if ends(jc) {
			s.retire(jc, why)
		}
	})
	tenant := p.policies.Tenant(owner)
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

// Persistent returns how many persistent contexts there are. They end with the pool. Any goroutine may call it.
func (p *Pool) Persistent() int { return p.affinity.Len() }

// leaveTenant closes the contexts that an owner has in isolates of a tenant to which it no longer belongs. Those
// in which something runs end after it: no further event finds them.
func (p *Pool) leaveTenant(owner, tenant string) {
	eachPersistent(&p.affinity, owner, "", func(s *persistents, jc *jsContext) { s.retire(jc, discardOther) })
	for i := range p.threads {
		t := p.threads[i].Load()
		if t == nil {
			continue // not opened yet
		}
		t.post(func(t *thread) {
			if i == 0 {
				t.heaps.borrowAll(tenant)
			}
			t.heaps.dropIdle(tenant, discardOther, contextsOf(owner, t.heaps.isolates[tenant]))
		})
	}
}
