package deploy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/events"
)

// Installer gets versions of workers. The version that it gets last is the active one. Older versions stay for events
// that name them. Its methods are called by one goroutine.
type Installer interface {
	Install(w *events.Worker)
	Remove(owner, name string)
}

// Watcher keeps an Installer at what the store holds. It is the follower of the bucket of workers.
type Watcher struct {
	store     *Store
	installer Installer
	ready     chan struct{}
	readyOnce sync.Once

	known    map[string]*installed // by key
	vanished atomic.Int64          // known workers whose records have vanished
	workers  atomic.Int64          // known workers that are installed
}

// installed is what the Installer has of a worker.
type installed struct {
	versions map[string]bool
	active   string    // installed last
	revision uint64    // newest that was taken
	stored   string    // version of the newest entry in the pass in progress; "" = none has come
	vanished time.Time // when the record was found to be gone without a removal; zero = it is not gone
}

// Watcher returns a watcher that starts with Run.
func (s *Store) Watcher(installer Installer) *Watcher {
	return &Watcher{store: s, installer: installer, ready: make(chan struct{}), known: map[string]*installed{}}
}

// Ready is closed when all that was in the store at the start is installed.
func (w *Watcher) Ready() <-chan struct{} { return w.ready }

// Run installs each kept version of each worker, in the order of their deploys, and then each change, until ctx is
// done. It returns ctx's error. A worker whose record is gone without a removal stays for a while (vanished.go).
func (w *Watcher) Run(ctx context.Context) error {
	watch := bucketWatch{
		kv: w.store.kv, what: "workers", options: []jetstream.WatchOpt{jetstream.IncludeHistory()}, every: w.store.cfg.CheckEvery,
		log: w.store.cfg.Log, restarts: w.store.metrics.restarts.Inc, follower: w,
	}
	return watch.run(ctx)
}

func (w *Watcher) begin(recreated bool) {
	for _, k := range w.known {
		k.stored = ""
		if recreated {
			k.revision = 0
		}
	}
}

// take installs an entry. In the initial part of a pass, it passes over what is installed already, and settle makes the
// newest version the active one.
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

// remove ends a worker here.
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

// settle ends the initial part of a pass. Workers that are no longer stored have vanished. Where another version than
// the newest was installed last, the newest is installed again.
func (w *Watcher) settle(ctx context.Context) error {
	for key, k := range w.known {
		switch {
		case k.stored == "":
			w.vanish(key, k)
		case k.stored != k.active && k.versions[k.stored]:
			e, err := w.store.kv.Get(ctx, key)
			if errors.Is(err, jetstream.ErrKeyNotFound) {
				continue // removed just now: the watch will report it
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
	w.readyOnce.Do(func() { close(w.ready) })
	return nil
}

func (w *Watcher) tick(now time.Time) (keys int) {
	w.forgetVanished(now)
	return len(w.known) - w.Vanished()
}
