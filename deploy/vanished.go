package deploy

import (
	"context"
	"fmt"
	"time"

	"github.com/pinwheel-run/pinwheel/internal/guard"
)

// vanish is for a worker whose record is gone, and no marker of a removal is there: the bucket was purged or deleted, or an older copy of it came
// back. Nobody wanted that, most likely: its events must not become dead letters. It stays, and everybody is told.
func (w *Watcher) vanish(key string, k *installed) {
	if guard.EmptyBucket.Off() {
		w.remove(key)
		return
	}
	if k.vanished.IsZero() {
		k.vanished = time.Now()
		w.store.metrics.vanished.Set(float64(w.lost.Add(1)))
		w.store.cfg.Log.Error().Str("worker", key).Stringer("kept_for", w.store.cfg.KeepVanished).
			Msg("the record of a worker has vanished from its bucket, and nobody has removed it: it goes on here. Restore the bucket, or deploy the worker again; 'pinwheel workers rm' ends it")
	}
}

// returned is for a worker that is stored again, or removed.
func (w *Watcher) returned(key string, k *installed) {
	if k.vanished.IsZero() {
		return
	}
	k.vanished = time.Time{}
	w.store.metrics.vanished.Set(float64(w.lost.Add(-1)))
	w.store.cfg.Log.Info().Str("worker", key).Msg("a worker whose record had vanished is stored again, or removed")
}

// forgetVanished removes the workers that have had their time.
func (w *Watcher) forgetVanished(now time.Time) {
	if w.lost.Load() == 0 {
		return
	}
	for key, k := range w.known {
		if !k.vanished.IsZero() && now.Sub(k.vanished) > w.store.cfg.KeepVanished {
			w.store.cfg.Log.Error().Str("worker", key).Msg("a worker whose record has vanished is given up")
			w.remove(key)
		}
	}
}

// Vanished is how many workers are installed whose records have vanished. From any goroutine.
func (w *Watcher) Vanished() int { return int(w.lost.Load()) }

// Installed is how many workers are installed, those among them. From any goroutine.
func (w *Watcher) Installed() int { return int(w.workers.Load()) }

// Emptied reports whether the bucket had records and has none, nor a marker of a removal: somebody has purged it. All that it knows of it is its
// stream, so that of a bucket that was deleted and made anew it cannot tell.
func (s *Store) Emptied(ctx context.Context) (bool, error) {
	if guard.EmptyBucket.Off() {
		return false, nil
	}
	last, keys, err := s.state(ctx)
	if err != nil {
		return false, fmt.Errorf("look whether there are workers: %w", err)
	}
	return last > 0 && keys == 0, nil
}
