package fleet

import (
	"context"
	"sync"

	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// policies follows the bucket of owners' policies.
type policies struct {
	bucket *deploy.Policies

	ready     chan struct{} // closed when all policies have come that were stored at the start
	readyOnce sync.Once
}

// follow calls apply with each policy of the bucket, until ctx is done.
func (p *policies) follow(ctx context.Context, apply func(owner string, policy workers.Policy)) {
	p.bucket.Watch(ctx, apply, func() { p.readyOnce.Do(func() { close(p.ready) }) })
}
