package deploy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// deploymentFollower is the follower of the bucket of deployments.
type deploymentFollower struct{ *Watcher }

func (w deploymentFollower) begin(bool) {}

func (w deploymentFollower) take(ctx context.Context, e jetstream.KeyValueEntry, initial bool) (err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer func() {
		if err == nil {
			w.seen.Deployments = e.Revision()
		}
	}()
	if e.Operation() != jetstream.KeyValuePut {
		return w.gone(ctx, e.Key())
	}
	d, err := decodeDeployment(e)
	if err != nil {
		w.store.unreadable(e.Key(), e.Revision(), err)
		return nil // the one before it holds
	}
	w.deployments[e.Key()] = d
	return w.changed(ctx, e.Key(), e.Created(), initial)
}

// gone handles the deletion of a record. A worker is removed together with its deployment: then no other version may be
// active for the moment until that is known.
func (w deploymentFollower) gone(ctx context.Context, key string) error {
	if _, ok := w.deployments[key]; !ok {
		return nil
	}
	e, err := w.store.kv.Get(ctx, key)
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound): // deleted too
		w.remove(key)
	case err != nil:
		return fmt.Errorf("read worker %s: %w", key, err)
	}
	delete(w.deployments, key)
	if err != nil {
		return nil
	}
	return w.changed(ctx, key, e.Created(), false)
}

func (w deploymentFollower) changed(ctx context.Context, key string, at time.Time, initial bool) error {
	k := w.known[key]
	if k == nil || initial || !w.readAll() {
		return nil
	}
	k.came = at
	return w.reconcile(ctx, key, k)
}

// settle ends the initial part of a pass. A deployment whose record is gone without a deletion holds on: most likely no
// one wanted that.
func (w deploymentFollower) settle(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.read.deployments = true
	return w.reconcileAll(ctx)
}

func (w deploymentFollower) tick(time.Time) (keys int) { return 0 }
