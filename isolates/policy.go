package isolates

import (
	"maps"

	"github.com/pinwheel-run/pinwheel/events"
)

// SetPolicy sets what an owner may have from now on. The zero Policy means the configuration. The pool uses only a
// policy's shares of isolates and heap, and its ceilings of limits. Any goroutine may call it.
func (p *Pool) SetPolicy(owner string, policy events.Policy) {
	p.policyMu.Lock()
	defer p.policyMu.Unlock()
	next := map[string]events.Policy{}
	if now := p.policies.Load(); now != nil {
		maps.Copy(next, *now)
	}
	if next[owner] = policy; policy.IsZero() {
		delete(next, owner)
	}
	p.policies.Store(&next)
	p.wakeHungry()
}

func (p *Pool) policy(owner string) events.Policy {
	if all := p.policies.Load(); all != nil && len(*all) > 0 {
		return (*all)[owner]
	}
	return events.Policy{}
}

// limits returns the limits of a worker, within what its owner may have now.
func (p *Pool) limits(w *events.Worker) events.Limits {
	if all := p.policies.Load(); all != nil && len(*all) > 0 {
		return w.Limits.Within((*all)[w.Owner].Ceilings)
	}
	return w.Limits.OrDefault()
}

// share returns how many isolates, and bytes in them, an owner may have.
func (p *Pool) share(owner string) (isolates, bytes int64) {
	policy := p.policy(owner)
	isolates, bytes = int64(p.cfg.OwnerMaxIsolates), int64(p.cfg.OwnerHeapMB)<<20
	if policy.MaxIsolates > 0 {
		isolates = int64(policy.MaxIsolates)
	}
	if policy.HeapMB > 0 {
		bytes = int64(policy.HeapMB) << 20
	}
	return isolates, bytes
}
