package deploy

import (
	"context"
	"fmt"
	"time"

	"github.com/pinwheel-run/pinwheel/internal/lib/guard"
)

// vanish notes that the record of a worker is gone without the marker of a removal. Most likely no one wanted that: the
// bucket was purged or deleted, or an older copy of it came back. The worker's events must not become dead letters, so
// it stays installed.
func (w *Watcher) vanish(key string, k *watched) {
	if guard.EmptyBucket.Off() {
		w.remove(key)
		return
	}
	if k.vanished.IsZero() {
		k.vanished = time.Now()
		w.store.metrics.vanished.Set(float64(w.vanished.Add(1)))
		w.store.cfg.Log.Error().Str("worker", key).Stringer("kept_for", w.store.cfg.KeepVanished).
			Msg("the record of a worker has vanished from its bucket without a removal: the worker goes on here. " +
				"Restore the bucket, or deploy the worker again; 'pinwheel workers rm' ends it")
	}
}

// returned notes that a worker is stored again, or removed.
func (w *Watcher) returned(key string, k *watched) {
	if k.vanished.IsZero() {
		return
	}
	k.vanished = time.Time{}
	w.store.metrics.vanished.Set(float64(w.vanished.Add(-1)))
	w.store.cfg.Log.Info().Str("worker", key).Msg("a worker whose record had vanished is stored again, or removed")
}

// forgetVanished removes the workers whose records have been gone for longer than KeepVanished.
func (w *Watcher) forgetVanished(now time.Time) {
	if w.vanished.Load() == 0 {
		return
	}
	for key, k := range w.known {
		if !k.vanished.IsZero() && now.Sub(k.vanished) > w.store.cfg.KeepVanished {
			w.store.cfg.Log.Error().Str("worker", key).Msg("a worker whose record has vanished is given up")
			w.remove(key)
		}
	}
}

// Vanished is the number of installed workers whose records have vanished. Any goroutine may call it.
func (w *Watcher) Vanished() int { return int(w.vanished.Load()) }

// Installed is the number of installed workers, those with vanished records included. Any goroutine may call it.
func (w *Watcher) Installed() int { return int(w.workers.Load()) }

// Emptied reports whether the bucket had records and has none now, nor markers of removals: it was purged. A bucket
// that was deleted and created again does not show this.
func (s *Store) Emptied(ctx context.Context) (bool, error) {
	if guard.EmptyBucket.Off() {
		return false, nil
	}
	state, err := stateOf(ctx, s.kv, "workers")
	if err != nil {
		return false, fmt.Errorf("check whether there are workers: %w", err)
	}
	return state.last > 0 && state.keys == 0, nil
}
