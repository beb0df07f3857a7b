package deploy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/deploy/bundle"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/env/assetstore"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
)

// Names of the buckets in JetStream, unless configured otherwise.
const (
	DefaultBucket  = "PINWHEEL_WORKERS"
	DefaultObjects = "PINWHEEL_BUNDLES"
)

// History is the number of versions of a worker that are kept, and of its deployments.
const History = 64

// Loaded is the number of the newest versions whose code every process has, beside those that a deployment names.
const Loaded = 10

// ErrNotFound is the error when there is no such worker, or no such version of it.
var ErrNotFound = errors.New("no such worker")

// ErrNoVersion is the error when a worker has no such version. It is an ErrNotFound too.
var ErrNoVersion error = noVersionError{}

type noVersionError struct{}

func (noVersionError) Error() string { return "no such version" }

// Is reports whether target is ErrNotFound.
func (noVersionError) Is(target error) bool { return target == ErrNotFound }

// Config of a Store. The zero Config is usable.
type Config struct {
	// Bucket is the KV bucket of the records. Empty: DefaultBucket.
	Bucket string
	// Objects is the object store for what does not fit a record. Empty: DefaultObjects.
	Objects string
	// MaxBytes of each of the two; the buckets of deployments, policies and routes have parts of it. A bucket that exists
	// keeps the size that it has. 0 = DefaultMaxBytes; Unlimited = as many as JetStream has.
	MaxBytes int64
	// AssetsMaxBytes is the same for the bucket of files. 0 = DefaultAssetsMaxBytes.
	AssetsMaxBytes int64
	// Replicas of both, 1 to 5. 0 = 1.
	Replicas int
	// InlineLimit is the largest record that has its code itself, bytes. 0 = 512 KiB. A record never exceeds the
	// largest message of the server.
	InlineLimit int
	// CheckEvery is the time between two comparisons of what a watcher has seen with what the server has. 0 = 5 s.
	CheckEvery time.Duration
	// KeepVanished is how long a watcher keeps a worker installed whose record is gone without a removal. 0 = 24 h.
	KeepVanished time.Duration
	// CheckSources checks the sources of workers that are deployed. nil: workers with sources are not deployed.
	CheckSources CheckSources
	// Log gets the messages of watchers. The zero Logger is silent.
	Log zerolog.Logger
	// Metrics may be nil.
	Metrics prometheus.Registerer
}

// WithDefaults is c with defaults for the fields that are zero.
func (c Config) WithDefaults() Config {
	if c.Bucket == "" {
		c.Bucket = DefaultBucket
	}
	if c.Objects == "" {
		c.Objects = DefaultObjects
	}
	if c.MaxBytes == 0 {
		c.MaxBytes = DefaultMaxBytes
	}
	if c.AssetsMaxBytes == 0 {
		c.AssetsMaxBytes = DefaultAssetsMaxBytes
	}
	if c.Replicas == 0 {
		c.Replicas = 1
	}
	if c.InlineLimit == 0 {
		c.InlineLimit = 512 << 10
	}
	if c.CheckEvery == 0 {
		c.CheckEvery = 5 * time.Second
	}
	if c.KeepVanished == 0 {
		c.KeepVanished = 24 * time.Hour
	}
	return c
}

// Validate names the first field that is wrong.
func (c Config) Validate() error {
	switch {
	case c.MaxBytes < Unlimited || c.MaxBytes > 0 && c.MaxBytes < 1<<20:
		return fmt.Errorf("deploy: MaxBytes is %d: it is at least %d, or %d for no limit", c.MaxBytes, 1<<20, Unlimited)
	case c.AssetsMaxBytes < Unlimited || c.AssetsMaxBytes > 0 && c.AssetsMaxBytes < 1<<20:
		return fmt.Errorf("deploy: AssetsMaxBytes is %d: it is at least %d, or %d for no limit", c.AssetsMaxBytes, 1<<20, Unlimited)
	case c.Replicas < 0 || c.Replicas > 5:
		return fmt.Errorf("deploy: Replicas is %d: it is 1 to 5", c.Replicas)
	case c.InlineLimit < 0:
		return fmt.Errorf("deploy: InlineLimit is %d: it is a number of bytes", c.InlineLimit)
	case c.KeepVanished < 0:
		return fmt.Errorf("deploy: KeepVanished is %s: it is longer than 0", c.KeepVanished)
	case c.CheckEvery < 0:
		return fmt.Errorf("deploy: CheckEvery is %s: it is longer than 0", c.CheckEvery)
	}
	return nil
}

// Store has the versions of all workers, in JetStream. Any number of goroutines and processes may use it at once.
type Store struct {
	cfg     Config
	js      jetstream.JetStream
	kv      jetstream.KeyValue
	objects jetstream.ObjectStore
	inline  int // largest record that has its code
	metrics *metrics

	deployments jetstream.KeyValue
	routes      *routeBook
	files       *assetstore.Store
	modules     moduleBook
	secrets     *Secrets  // to check that a version has what it names
	policies    *Policies // and that its owner is granted it
}

// Open creates the buckets, or updates them to what cfg says. There is nothing to close.
func Open(ctx context.Context, js jetstream.JetStream, cfg Config) (*Store, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.WithDefaults()
	reconciler := &resources.Reconciler{JS: js, Log: cfg.Log}
	kv, err := reconciler.Bucket(ctx, cfg.workers())
	if err != nil {
		return nil, fmt.Errorf("open worker bucket %s: %w", cfg.Bucket, err)
	}
	objects, err := reconciler.Objects(ctx, cfg.bundles())
	if err != nil {
		return nil, fmt.Errorf("open bundle store %s: %w", cfg.Objects, err)
	}
	deployments, err := reconciler.Bucket(ctx, cfg.deployments())
	if err != nil {
		return nil, fmt.Errorf("open bucket %s: %w", BucketDeployments, err)
	}
	s := &Store{cfg: cfg, js: js, kv: kv, objects: objects, inline: cfg.InlineLimit, metrics: newMetrics(cfg.Metrics),
		deployments: deployments}
	routes, err := reconciler.Bucket(ctx, cfg.routes())
	if err != nil {
		return nil, fmt.Errorf("open bucket %s: %w", BucketRoutes, err)
	}
	s.routes = s.routeBook(routes)
	files := cfg.assets()
	files.Room = s.roomForFiles
	s.files = assetstore.New(js, files)
	if s.secrets, err = OpenSecrets(ctx, js, cfg); err != nil {
		return nil, err
	}
	if s.policies, err = OpenPolicies(ctx, js, cfg); err != nil {
		return nil, err
	}
	// Subject and headers need room in a message too.
	if most := int(js.Conn().MaxPayload()) - 4<<10; most > 0 {
		s.inline = min(s.inline, most)
	}
	return s, nil
}

func key(owner, name string) string { return owner + "." + name }

// checkTarget keeps wildcards and dots out of keys.
func checkTarget(owner, name string) error {
	if err := events.CheckName("owner", owner); err != nil {
		return err
	}
	return events.CheckName("worker", name)
}

// Get is one version of a worker, with its code. version is the whole version, like 3-0123456789ab, its number, or an
// alias; empty = the active one, which in a split is the version before the new one. The error is ErrNotFound when
// there is no such version, or when it is older than the kept versions.
func (s *Store) Get(ctx context.Context, owner, name, version string) (*workers.Worker, error) {
	k, err := s.found(ctx, owner, name)
	if err != nil {
		return nil, err
	}
	r := k.find(version)
	if r == nil {
		return nil, noVersion(owner, name, version)
	}
	return s.complete(ctx, r)
}

// Installation is a worker with its kept versions, oldest first and without their code, and its deployment.
func (s *Store) Installation(ctx context.Context, owner, name string) (workers.Installation, error) {
	k, err := s.found(ctx, owner, name)
	if err != nil {
		return workers.Installation{}, err
	}
	return k.installation(), nil
}

// Versions are the kept versions of a worker without their code, oldest first.
func (s *Store) Versions(ctx context.Context, owner, name string) ([]*workers.Worker, error) {
	in, err := s.Installation(ctx, owner, name)
	return in.Versions, err
}

// found is what is kept of a worker that has a readable version.
func (s *Store) found(ctx context.Context, owner, name string) (kept, error) {
	if err := checkTarget(owner, name); err != nil {
		return kept{}, err
	}
	k, err := s.kept(ctx, owner, name)
	if err != nil {
		return kept{}, err
	}
	if len(k.records) == 0 {
		return kept{}, notFound(owner, name)
	}
	return k, nil
}

func notFound(owner, name string) error { return fmt.Errorf("%w: %s/%s", ErrNotFound, owner, name) }

func noVersion(owner, name, version string) error {
	if version == "" {
		return fmt.Errorf("%w: %s/%s has no active version", ErrNotFound, owner, name)
	}
	return fmt.Errorf("%w: %s/%s has no version %q", ErrNoVersion, owner, name, version)
}

// decode reads an entry without the bundle, which is most of it: complete reads that. It logs and counts an entry that
// cannot be read, which must not keep other workers from running.
func (s *Store) decode(e jetstream.KeyValueEntry) (*record, error) {
	r, err := decodeSummary(e.Value())
	if err == nil && key(r.Owner, r.Name) != e.Key() {
		err = fmt.Errorf("worker record of %s/%s is at key %s", r.Owner, r.Name, e.Key())
	}
	if err != nil {
		s.unreadable(e.Key(), e.Revision(), err)
		return nil, err
	}
	r.revision = e.Revision()
	return r, nil
}

func (s *Store) unreadable(key string, revision uint64, err error) {
	s.metrics.unreadable.Inc()
	s.cfg.Log.Error().Err(err).Str("key", key).Uint64("revision", revision).Msg("record skipped")
}

// errDamaged marks an error that another try does not correct.
var errDamaged = errors.New("damaged")

// maxObject is the largest object of a bundle, bytes: JSON has up to six for one of its text.
const maxObject = 6*(bundle.MaxBundle+bundle.MaxSourceMap) + 1024

// readObject reads the object of a bundle. What stored it may have kept to no bound.
func readObject(ctx context.Context, objects jetstream.ObjectStore, name string) ([]byte, error) {
	o, err := objects.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = o.Close() }()
	info, err := o.Info()
	switch {
	case err != nil:
		return nil, err
	case info.Size > maxObject:
		return nil, fmt.Errorf("%w: the object has %d bytes, and at most %d are read", errDamaged, info.Size, maxObject)
	}
	return io.ReadAll(o)
}

// complete is the worker of a record with its code, which may be in the object store.
func (s *Store) complete(ctx context.Context, r *record) (_ *workers.Worker, err error) {
	if r.Object != "" {
		text, err := readObject(ctx, s.objects, r.Object)
		if errors.Is(err, errDamaged) || errors.Is(err, jetstream.ErrObjectNotFound) ||
			errors.Is(err, jetstream.ErrDigestMismatch) {
			return nil, fmt.Errorf("bundle of %s/%s is %w: %w", r.Owner, r.Name, errDamaged, err)
		}
		if err != nil {
			return nil, fmt.Errorf("read bundle of %s/%s: %w", r.Owner, r.Name, err)
		}
		p := &payload{}
		if err := json.Unmarshal(text, p); err != nil {
			return nil, fmt.Errorf("bundle of %s/%s is %w: %w", r.Owner, r.Name, errDamaged, err)
		}
		if len(p.Code) > bundle.MaxBundle {
			return nil, fmt.Errorf("bundle of %s/%s is %w: it has %d bytes of code, and at most %d are read",
				r.Owner, r.Name, errDamaged, len(p.Code), bundle.MaxBundle)
		}
		r.Bundle = p
	}
	if r.Object == "" {
		if err := r.readBundle(); err != nil {
			return nil, fmt.Errorf("%w: %w", errDamaged, err)
		}
	}
	w := r.worker()
	if w.Modules, err = readModules(ctx, s, r.Owner, r.Modules); err != nil {
		return nil, fmt.Errorf("read modules of %s/%s: %w", r.Owner, r.Name, err)
	}
	if err := checkHash(w); err != nil {
		return nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
	return w, nil
}
