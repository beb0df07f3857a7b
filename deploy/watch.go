package deploy

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/env/assetstore"
)

// Installer gets what a process has of each worker. Its methods are called by one goroutine at a time.
type Installer interface {
	// Install replaces what the Installer had of the worker.
	Install(in workers.Installation)
	Remove(owner, name string)
}

// Watcher keeps an Installer at what the store holds. It follows the bucket of workers and that of deployments. A
// deployment counts when the code of all its versions is loaded; until then the one before holds.
type Watcher struct {
	store     *Store
	installer Installer
	ready     chan struct{}
	readyOnce sync.Once

	mu          sync.Mutex
	known       map[string]*watched         // by key
	deployments map[string]storedDeployment // by key
	read        struct{ workers, deployments bool }

	seen     Seen
	vanished atomic.Int64 // known workers whose records have vanished
	workers  atomic.Int64 // known workers that are installed
}

// Seen is how far a Watcher has followed the store: the newest revision of each bucket that it has taken.
type Seen struct {
	Workers     uint64 `json:"workers"`
	Deployments uint64 `json:"deployments"`
}

// Seen returns how far the Watcher has followed the store. Any goroutine may call it.
func (w *Watcher) Seen() Seen {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen
}

// watched is what a Watcher knows of a worker.
type watched struct {
	history   // at most History versions
	fresh     map[string]*record
	loaded    map[string]*workers.Worker
	damaged   map[string]bool // versions whose code cannot be read
	missing   map[string]bool // those of damaged whose modules are not there: a deploy may store them again
	installed workers.Installation
	came      time.Time // when the newest entry was stored
	vanished  time.Time // when the records were found to be gone without a removal; zero = they are not gone

	revision uint64 // newest that was taken
	again    bool   // a pass has begun, and no entry has come in it yet
}

// Watcher returns a watcher that starts with Run.
func (s *Store) Watcher(installer Installer) *Watcher {
	return &Watcher{store: s, installer: installer, ready: make(chan struct{}), known: map[string]*watched{},
		deployments: map[string]storedDeployment{}}
}

// Ready is closed when all that was in the store at the start is installed.
func (w *Watcher) Ready() <-chan struct{} { return w.ready }

// Run installs each worker and then each change, until ctx is done. It returns ctx's error. A worker whose records are
// gone without a removal stays for a while (vanished.go).
func (w *Watcher) Run(ctx context.Context) error {
	watch := func(kv jetstream.KeyValue, what string, f follower, options ...jetstream.WatchOpt) error {
		b := bucketWatch{
			kv: kv, what: what, options: options, every: w.store.cfg.CheckEvery,
			log: w.store.cfg.Log, restarts: w.store.metrics.restarts.Inc, follower: f,
		}
		return b.run(ctx)
	}
	var running sync.WaitGroup
	defer running.Wait()
	// it returns only the error of ctx
	running.Go(func() { _ = watch(w.store.deployments, "deployments", deploymentFollower{w}) })
	return watch(w.store.kv, "workers", w, jetstream.IncludeHistory())
}

func (w *Watcher) begin(recreated bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.read.workers = false
	for _, k := range w.known {
		k.again = true
		if recreated {
			k.revision = 0
		}
	}
}

// take notes an entry. In the initial part of a pass, settle installs what has come.
func (w *Watcher) take(ctx context.Context, e jetstream.KeyValueEntry, initial bool) (err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer func() {
		if err == nil {
			w.seen.Workers = e.Revision()
		}
	}()
	k := w.known[e.Key()]
	if e.Operation() != jetstream.KeyValuePut {
		// A removal that an earlier pass has seen came before what is installed now.
		if k != nil && e.Revision() > k.revision {
			w.remove(e.Key())
		}
		return nil
	}
	r, err := w.store.decode(e)
	if err != nil && k == nil {
		return nil // logged; there is nothing else of this worker
	}
	if k == nil {
		k = &watched{fresh: map[string]*record{}, loaded: map[string]*workers.Worker{}, damaged: map[string]bool{},
			missing: map[string]bool{},
			history: history{oldest: e.Revision()}}
		w.known[e.Key()] = k
	}
	if k.again { // the bucket says anew what it has
		k.again, k.history = false, history{oldest: e.Revision()}
		w.returned(e.Key(), k)
	}
	if k.revision = max(k.revision, e.Revision()); err != nil {
		k.unreadable = true
		return nil // logged; the worker stays as it is
	}
	k.note(r, e.Created())
	if initial || !w.readAll() {
		return nil
	}
	return w.reconcile(ctx, e.Key(), k)
}

// note adds a version. It keeps the code of those that are likely to be loaded.
func (k *watched) note(r *record, stored time.Time) {
	v := r.stored()
	k.versions = append(slices.DeleteFunc(k.versions, func(o storedVersion) bool { return o.version == v.version }), v)
	k.versions = k.versions[max(0, len(k.versions)-History):]
	delete(k.damaged, v.version)
	k.came, k.fresh[v.version] = stored, r
	if n := len(k.versions) - Loaded; n > 0 {
		delete(k.fresh, k.versions[n-1].version)
	}
}

// readAll reports whether all that was stored at the start is known.
func (w *Watcher) readAll() bool { return w.read.workers && w.read.deployments }

// settle ends the initial part of a pass. Workers that are no longer stored have vanished.
func (w *Watcher) settle(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.read.workers = true
	for key, k := range w.known {
		if k.again {
			w.vanish(key, k)
		}
	}
	return w.reconcileAll(ctx)
}

// reconcileAll installs what has changed of all workers, once all is known.
func (w *Watcher) reconcileAll(ctx context.Context) error {
	if !w.readAll() {
		return nil
	}
	for key, k := range w.known {
		if k.again { // vanished
			continue
		}
		if err := w.reconcile(ctx, key, k); err != nil {
			return err
		}
	}
	w.readyOnce.Do(func() { close(w.ready) })
	return nil
}

// reconcile installs what is stored of a worker, if that differs from what is installed.
func (w *Watcher) reconcile(ctx context.Context, key string, k *watched) error {
	for v, is := range k.missing {
		if is {
			delete(k.damaged, v)
		}
	}
	clear(k.missing)
	d, err := w.loadable(ctx, key, k)
	if err != nil {
		return err
	}
	in := workers.Installation{Deployment: d}
	in.Owner, in.Name, _ = strings.Cut(key, ".")
	newest := k.versions[max(0, len(k.versions)-Loaded):]
	for _, v := range k.versions {
		if len(newest) > 0 && v.number < newest[0].number && !d.Names(v.version) {
			delete(k.loaded, v.version)
			continue
		}
		if err := w.load(ctx, key, k, v); err != nil {
			return err
		}
		if worker := k.loaded[v.version]; worker != nil {
			in.Versions = append(in.Versions, worker)
		}
	}
	if len(in.Versions) == 0 || reflect.DeepEqual(in, k.installed) {
		return nil
	}
	if len(k.installed.Versions) == 0 {
		w.workers.Add(1)
	}
	for _, v := range in.Versions {
		if k.installed.Version(v.Version) == nil {
			w.store.metrics.installs.Inc()
		}
	}
	w.installer.Install(in)
	k.installed = in
	w.store.metrics.activation.Observe(max(0, time.Since(k.came).Seconds()))
	return nil
}

// loadable loads the versions of the effective deployment, and returns it. When one of them is missing, the deployment
// that is installed holds on.
func (w *Watcher) loadable(ctx context.Context, key string, k *watched) (workers.Deployment, error) {
	deployed := w.deployments[key]
	for {
		readable := k.history
		readable.versions = slices.DeleteFunc(slices.Clone(k.versions),
			func(v storedVersion) bool { return k.damaged[v.version] })
		// What it names may be on its way.
		readable.unreadable = readable.unreadable || len(readable.versions) < len(k.versions) || deployed.seen > k.revision
		d := readable.effective(deployed)
		missing, damaged := "", false
		for _, s := range d.Split {
			i := slices.IndexFunc(k.versions, func(v storedVersion) bool { return v.version == s.Version })
			if i < 0 {
				missing = s.Version
				continue
			}
			if err := w.load(ctx, key, k, k.versions[i]); err != nil {
				return d, err
			}
			if k.loaded[s.Version] == nil {
				missing, damaged = s.Version, true
			}
		}
		switch {
		case missing == "":
			return d, nil
		case damaged && !deployed.Names(missing):
			continue // it was to be active because it is the newest: the one before it may be read
		case len(k.installed.Deployment.Split) == 0 && damaged:
			w.store.cfg.Log.Error().Str("worker", key).Str("version", missing).Msg("the code of a deployed version cannot be read: the worker has no active version here")
		}
		held := k.installed.Deployment
		for _, s := range held.Split {
			if k.loaded[s.Version] == nil {
				return workers.Deployment{}, nil
			}
		}
		return held, nil
	}
}

// load loads the code of a version, unless it is loaded or cannot be read.
func (w *Watcher) load(ctx context.Context, key string, k *watched, v storedVersion) error {
	if old := k.loaded[v.version]; old != nil || k.damaged[v.version] {
		delete(k.fresh, v.version)
		return nil
	}
	r := k.fresh[v.version]
	if r == nil {
		e, err := w.store.kv.GetRevision(ctx, key, v.revision)
		if errors.Is(err, jetstream.ErrKeyNotFound) { // dropped, or removed just now
			k.damaged[v.version] = true
			return nil
		}
		if err != nil {
			return fmt.Errorf("read version %s of %s: %w", v.version, key, err)
		}
		if r, err = w.store.decode(e); err != nil {
			k.damaged[v.version] = true
			return nil
		}
	}
	worker, err := w.store.complete(ctx, r)
	if errors.Is(err, errDamaged) {
		w.store.unreadable(key, v.revision, err)
		k.damaged[v.version], k.missing[v.version] = true, errors.Is(err, assetstore.ErrNotFound)
		return nil
	}
	if err != nil {
		return err
	}
	k.loaded[v.version] = worker
	delete(k.fresh, v.version)
	return nil
}

// remove ends a worker here.
func (w *Watcher) remove(key string) {
	k := w.known[key]
	if k == nil {
		return
	}
	w.returned(key, k)
	delete(w.known, key)
	if len(k.installed.Versions) > 0 {
		w.workers.Add(-1)
		w.installer.Remove(k.installed.Owner, k.installed.Name)
	}
}

func (w *Watcher) tick(now time.Time) (keys int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forgetVanished(now)
	return len(w.known) - w.Vanished()
}
