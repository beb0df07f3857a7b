package fleet

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"sync"

	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/events/workers/catalog"
	"github.com/pinwheel-run/pinwheel/internal/env/assetstore"
	"github.com/pinwheel-run/pinwheel/internal/http/assetserver"
	"github.com/pinwheel-run/pinwheel/internal/http/gateway"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
)

// deployed is what owners have deployed, as it is stored and as this process has it.
type deployed struct {
	store   *deploy.Store
	files   *assetstore.Store
	watcher *deploy.Watcher // of store
	catalog catalog.Catalog // filled by the watcher, through the secretGate
	routes  *gateway.Routes
}

// follow installs what is deployed until ctx is done. It begins when all secrets have come that were stored at the
// start, so that no worker is found to lack what has only not come yet.
func (d *deployed) follow(ctx context.Context, secrets <-chan struct{}) {
	select {
	case <-secrets:
		_ = d.watcher.Run(ctx) // it returns only the error of ctx
	case <-ctx.Done():
	}
}

// paused lists what is paused as this process knows it, at most most entries, and says how many there are.
func (d *deployed) paused(most int) (list []control.Paused, all int) {
	policies := d.catalog.Policies()
	for _, owner := range slices.Sorted(maps.Keys(policies)) {
		if len(list) < most {
			list = append(list, control.PausedOf(owner, policies[owner])...)
		}
	}
	return list[:min(most, len(list))], d.catalog.Paused()
}

// fileBinding is the bindings.Files of a process.
type fileBinding struct {
	files assetserver.Files
	log   zerolog.Logger
}

// ServeFile answers a request of a handler with a file of its worker.
func (b fileBinding) ServeFile(rw http.ResponseWriter, r *http.Request, w *workers.Worker, follows bool) {
	if err := assetserver.ServeBinding(rw, r, b.files, w, follows); err != nil && r.Context().Err() == nil {
		b.log.Error().Err(err).Str("worker", w.Target()).Msg("a file cannot be read")
	}
}

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
