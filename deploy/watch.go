package deploy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/events"
)

// Installer takes up versions of workers. The version installed last is the active one; older ones
// stay for events that ask for them by name. Its methods are called by one goroutine.
type Installer interface {
	Install(w *events.Worker)
	Remove(owner, name string)
}

// Watcher keeps an Installer at what the store holds.
type Watcher struct {
	store     *Store
	installer Installer
	ready     chan struct{}
	readyOnce sync.Once

	known   map[string]*installed // by key
	seen    uint64                // newest revision of this pass
	stuckAt uint64                // what was seen when check last found the pass behind; ^0 = it was not
	lost    atomic.Int64          // workers whose records have vanished
	workers atomic.Int64          // that are installed
}

// installed is what the Installer has of a worker.
type installed struct {
	versions map[string]bool
	active   string    // installed last
	revision uint64    // newest that was taken
	stored   string    // version of the newest entry in the pass that is under way, "" if there is none
	vanished time.Time // when its record was found to be gone, though nobody has removed the worker; zero = it is not
}

// Watcher returns a watcher that starts with Run.
func (s *Store) Watcher(installer Installer) *Watcher {
	return &Watcher{store: s, installer: installer, ready: make(chan struct{}), known: map[string]*installed{}}
}

// Ready is closed when all that was in the store at the start is installed.
func (w *Watcher) Ready() <-chan struct{} { return w.ready }

// Run installs every kept version of every worker, in the order they were deployed, and then every change as it
// happens, until ctx is done. A watch that dies or falls behind is begun anew, and what was
// removed meanwhile is removed. A worker whose record is gone without a removal stays for a while (vanished.go). It returns ctx's error.
func (w *Watcher) Run(ctx context.Context) error {
	wait := backoff.NewExponentialBackOff(backoff.WithInitialInterval(20*time.Millisecond),
		backoff.WithMaxInterval(5*time.Second), backoff.WithMaxElapsedTime(0))
	for {
		err := w.pass(ctx, wait.Reset)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		w.store.metrics.restarts.Inc()
		w.store.cfg.Log.Warn().Err(err).Msg("watch on workers begins anew")
		if !sleep(ctx, wait.NextBackOff()) {
			return ctx.Err()
		}
	}
}

// pass watches until something goes wrong. synced is called when the store's content is installed.
func (w *Watcher) pass(ctx context.Context, synced func()) error {
	last, _, err := w.store.state(ctx)
	if err != nil {
		return err
	}
	watch, err := w.store.kv.WatchAll(ctx, jetstream.IncludeHistory())
	if err != nil {
		return fmt.Errorf("watch workers: %w", err)
	}
	defer stopWatch(watch)
	w.seen, w.stuckAt = 0, ^uint64(0)
	for _, k := range w.known {
		k.stored = ""
	}
	initial := true
	check := time.NewTicker(w.store.cfg.CheckEvery)
	defer check.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-check.C:
			if err := w.check(ctx); err != nil {
				return err
			}
		case e, ok := <-watch.Updates():
			if !ok {
				return errors.New("the watch on workers was closed")
			}
			if e == nil {
				initial = false
				// Entries may have been deleted behind the newest one that came.
				w.seen = max(w.seen, last)
				err = w.settle(ctx)
				if err == nil {
					synced()
					w.readyOnce.Do(func() { close(w.ready) })
				}
			} else {
				w.seen = e.Revision()
				err = w.take(ctx, e, initial)
			}
			if err != nil {
				return err
			}
		}
	}
}

// take installs an entry. In the initial part of a pass, what is installed already is passed over, and
// settle sees to it that the newest version is the active one.
func (w *Watcher) take(ctx context.Context, e jetstream.KeyValueEntry, initial bool) error {
	k := w.known[e.Key()]
	if e.Operation() != jetstream.KeyValuePut {
		// A removal that an earlier pass has seen came before what is installed now.
		if k != nil && e.Revision() > k.revision {
			w.remove(e.Key())
		}
		return nil
	}
	r, err := w.store.decode(e)
	if err != nil {
		return nil // logged; the worker stays as it is
	}
	if k == nil {
		k = &installed{versions: map[string]bool{}}
		w.known[e.Key()] = k
	}
	version := version(r.Number, r.Hash)
	k.stored, k.revision = version, max(k.revision, e.Revision())
	w.returned(e.Key(), k)
	if k.active == version || initial && k.versions[version] {
		return nil
	}
	return w.install(ctx, e, r)
}

func (w *Watcher) install(ctx context.Context, e jetstream.KeyValueEntry, r *record) error {
	worker, err := w.store.complete(ctx, r)
	if errors.Is(err, errDamaged) {
		w.store.unreadable(e, err)
		return nil
	}
	if err != nil {
		return err
	}
	w.installer.Install(worker)
	k := w.known[e.Key()]
	if k.active == "" {
		w.workers.Add(1)
	}
	k.versions[worker.Version], k.active = true, worker.Version
	w.store.metrics.installs.Inc()
	w.store.metrics.activation.Observe(max(0, time.Since(e.Created()).Seconds()))
	return nil
}

func (w *Watcher) remove(key string) {
	k := w.known[key]
	if k == nil {
		return
	}
	w.returned(key, k)
	if k.active != "" {
		w.workers.Add(-1)
	}
	delete(w.known, key)
	owner, name, _ := strings.Cut(key, ".")
	w.installer.Remove(owner, name)
}

// settle ends the initial part of a pass: workers that are no longer stored have vanished, and where another version than
// the newest was installed last, the newest is installed again.
func (w *Watcher) settle(ctx context.Context) error {
	for key, k := range w.known {
		switch {
		case k.stored == "":
			w.vanish(key, k)
		case k.stored != k.active && k.versions[k.stored]:
			e, err := w.store.kv.Get(ctx, key)
			if errors.Is(err, jetstream.ErrKeyNotFound) {
				continue // removed just now: the watch will say so
			}
			if err != nil {
				return fmt.Errorf("read worker %s: %w", key, err)
			}
			if r, err := w.store.decode(e); err == nil {
				if err := w.install(ctx, e, r); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// check compares what was seen with what the server has. To be behind is natural while messages
// are under way; not to have moved since the last check means that this watch tells nothing any more.
func (w *Watcher) check(ctx context.Context) error {
	w.forgetVanished(time.Now())
	last, keys, err := w.store.state(ctx)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return nil // NATS is away: the watch goes on when it is back
	case last < w.seen:
		for _, k := range w.known {
			k.revision = 0
		}
		return fmt.Errorf("the worker bucket was made anew: its last revision is %d, and %d was seen", last, w.seen)
	case int64(keys) < int64(len(w.known))-w.lost.Load():
		return fmt.Errorf("the worker bucket has %d keys, and %d workers were in it", keys, len(w.known))
	case last > w.seen && w.stuckAt == w.seen:
		return fmt.Errorf("the watch on workers stands at revision %d of %d", w.seen, last)
	}
	w.stuckAt = ^uint64(0)
	if last > w.seen {
		w.stuckAt = w.seen
	}
	return nil
}

// state is the newest revision of the bucket, and how many keys it has, those of removed workers among them.
func (s *Store) state(ctx context.Context) (last, keys uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	status, err := s.kv.Status(ctx)
	if err != nil {
		return 0, 0, fmt.Errorf("state of the worker bucket: %w", err)
	}
	bucket, ok := status.(*jetstream.KeyValueBucketStatus)
	if !ok {
		return 0, 0, fmt.Errorf("state of the worker bucket is a %T", status)
	}
	state := bucket.StreamInfo().State
	return state.LastSeq, state.NumSubjects, nil
}

// stopWatch ends a watch. Its goroutine may be about to hand over an entry, so the channel is read to its end.
func stopWatch(w jetstream.KeyWatcher) {
	_ = w.Stop() // an error means that it is stopped
	go func() {
		for range w.Updates() { //nolint:revive // only to empty it
		}
	}()
}
