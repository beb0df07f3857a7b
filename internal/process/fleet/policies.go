package fleet

import (
	"context"
	"maps"
	"sync"

	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// policies has the policies of owners: the bucket of them, and those that this process goes by. Several goroutines may
// call its methods.
type policies struct {
	bucket *deploy.Policies

	ready     chan struct{} // closed when all policies have come that were stored at the start
	readyOnce sync.Once

	mu   sync.Mutex
	list map[string]*workers.Policy // that are in effect here
}

// follow calls apply with each policy of the bucket, until ctx is done.
func (p *policies) follow(ctx context.Context, apply func(owner string, policy workers.Policy)) {
	p.bucket.Watch(ctx, apply, func() { p.readyOnce.Do(func() { close(p.ready) }) })
}

// set sets the policy of an owner. The zero Policy is none.
func (p *policies) set(owner string, policy workers.Policy) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if policy.IsZero() {
		delete(p.list, owner)
		return
	}
	if p.list == nil {
		p.list = map[string]*workers.Policy{}
	}
	p.list[owner] = &policy
}

// all returns the policies by owner. The caller may change the map, not the policies.
func (p *policies) all() map[string]*workers.Policy {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.list)
}
