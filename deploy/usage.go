package deploy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/lib/guard"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
	"github.com/pinwheel-run/pinwheel/internal/lib/stored"
)

// headerObjectBytes is the header of a stored record whose code is in the object store: how many bytes that object has.
// The fleet's user writes it. So what an owner has stored is known from headers alone.
const headerObjectBytes = "Pinwheel-Object-Bytes"

// maxRemovedNames is how many names of removed workers an owner may leave behind, beside those of workers. The bucket
// keeps a marker of each.
const maxRemovedNames = 1000

// Usage is what is stored for an owner.
type Usage struct {
	Workers int   // that are not removed
	Names   int   // of these, and of removed ones
	Bytes   int64 // of all kept versions, with their source maps and manifests. See UsageOf
	Objects int64 // of these, in the object store
	Modules int64 // of the modules of WebAssembly of all kept versions, each once; not among Bytes

	modules map[string]int64 // by hash
}

// QuotaError says that a worker is not deployed because its owner may not have that much.
type QuotaError struct{ Text string }

func (e *QuotaError) Error() string { return e.Text }

// InvalidError says that a request asks for something that is not allowed, whoever asks.
type InvalidError struct{ Err error }

func (e *InvalidError) Error() string { return e.Err.Error() }

// Unwrap is what is wrong.
func (e *InvalidError) Unwrap() error { return e.Err }

// UsageOf counts what is stored for an owner. It reads headers only. Of code in the object store that an earlier
// release stored, it counts the record.
func UsageOf(ctx context.Context, s *Store, owner string) (u Usage, err error) {
	if err := events.CheckName("owner", owner); err != nil {
		return u, err
	}
	stream := "KV_" + s.cfg.Bucket
	fail := func(err error) (Usage, error) {
		return Usage{}, fmt.Errorf("count what owner %s has stored: %w", owner, err)
	}
	scan, err := stored.Headers(ctx, s.js.Conn(), stream, []string{s.cfg.subject(owner, "*")}, false)
	if err != nil {
		return fail(err)
	}
	modules := map[string]int64{}
	names := map[string]bool{} // by subject: whether the newest entry is a version
	for m, err := range scan.Messages(ctx) {
		if err != nil {
			return fail(err)
		}
		names[m.Subject] = m.Header.Get("KV-Operation") == ""
		u.Bytes += entryBytes(m.Header)
		u.Objects += headerBytes(m.Header, headerObjectBytes)
		addModules(modules, m.Header.Get(headerModules))
	}
	if len(modules) > 0 {
		u.modules = modules
	}
	for _, size := range modules {
		u.Modules += size
	}
	u.Names = len(names)
	for _, there := range names {
		if there {
			u.Workers++
		}
	}
	return u, nil
}

// entryBytes is the size of an entry and of the object that it refers to.
func entryBytes(h nats.Header) int64 {
	return headerBytes(h, "Nats-Msg-Size") + headerBytes(h, headerObjectBytes)
}

// headerBytes is the number of bytes that a header says; 0 = none.
func headerBytes(h nats.Header, name string) int64 {
	n, err := strconv.ParseInt(h.Get(name), 10, 64)
	if err != nil {
		return 0
	}
	return max(n, 0)
}

// subject is where the entries of a worker are stored.
func (c Config) subject(owner, name string) string {
	return "$KV." + c.Bucket + "." + key(owner, name)
}

// checkQuota returns a *QuotaError if the owner may not have w too.
func checkQuota(ctx context.Context, s *Store, w *workers.Worker, p workers.Policy, k kept) error {
	u, err := UsageOf(ctx, s, w.Owner)
	if err != nil {
		return err
	}
	mostWorkers := cmp.Or(p.MaxWorkers, workers.DefaultMaxWorkers)
	most := int64(cmp.Or(p.CodeBytes, workers.DefaultCodeBytes))
	size := int64(len(w.Code) + len(w.SourceMap))
	has := u.Bytes + u.Modules
	for _, ref := range ModuleRefs(w.Modules) {
		if _, there := u.modules[ref.Hash]; !there {
			size += ref.Size
		}
	}
	var text string
	switch {
	case k.entries == 0 && u.Workers >= mostWorkers:
		text = fmt.Sprintf("owner %s has %d workers, and may have %d (maxWorkers): remove one with 'pinwheel workers rm', or ask the fleet's operators for more", w.Owner, u.Workers, mostWorkers)
	case k.revision == 0 && u.Names >= mostWorkers+maxRemovedNames:
		text = fmt.Sprintf("owner %s has used %d names of workers, with those of removed ones: use one of these again", w.Owner, u.Names)
	case has+size > most:
		text = fmt.Sprintf("the versions of owner %s have %d bytes, this one has %d, and all may have %d (codeBytes): remove a worker with 'pinwheel workers rm', or ask the fleet's operators for more", w.Owner, has, size, most)
	default:
		return nil
	}
	return &QuotaError{fmt.Sprintf("%s is refused: %s", w.Target(), text)}
}

const (
	// deploymentRoom is what a deployment takes at most, bytes: two notes, aliases and the steps of a rollout.
	deploymentRoom = 16 << 10
	// removalPart of a bucket stays free of versions: what removes something stores a marker.
	removalPart = 64
)

// encodedVersion is a version as it is stored.
type encodedVersion struct {
	stored *record
	text   []byte // the record
	object []byte // what does not fit it; nil = all does
}

// encoded is w as it is stored, if each bucket has room. The error is a *resources.FullError, or a *QuotaError.
func (s *Store) encoded(ctx context.Context, w *workers.Worker, req Request, k kept) (e encodedVersion, err error) {
	e.stored = newRecord(w, req.staged())
	if e.text, e.object, err = e.stored.encode(s.inline); err != nil {
		return e, err
	}
	if e.object != nil { // as deleteObjects knows it
		e.stored.Object = objectName(w.Owner, w.Name, w.Hash)
	}
	share := func(of func(Usage) int64) func() (int64, error) {
		return func() (int64, error) {
			u, err := UsageOf(ctx, s, w.Owner)
			return of(u), err
		}
	}
	for _, need := range []struct {
		bucket string
		bytes  int
		has    func() (int64, error)
	}{
		{s.cfg.Bucket, len(e.text), share(func(u Usage) int64 { return u.Bytes - u.Objects })},
		{s.cfg.Objects, len(e.object), share(func(u Usage) int64 { return u.Objects })},
	} {
		if need.bytes == 0 || k.entries >= History && need.bucket == s.cfg.Bucket { // it takes the place of another
			continue
		}
		if !req.Bounded {
			need.has = nil
		}
		if err := s.admitTo(ctx, need.bucket, w.Owner, int64(need.bytes), need.has); err != nil {
			return e, fmt.Errorf("deploy %s: %w", w.Target(), err)
		}
	}
	if err := s.admitDeployment(ctx, w.Owner, w.Name, req.Bounded); err != nil {
		return e, fmt.Errorf("deploy %s: %w", w.Target(), err)
	}
	return e, nil
}

// AdmitDeployment returns a *QuotaError when the deployments of an owner would have more of their bucket than is free
// in it for all others, and a *resources.FullError when it has no room. Callers ask before they change a deployment for
// its owner. The fleet itself does not ask: it steps a rollout back whoever has filled the bucket.
func (s *Store) AdmitDeployment(ctx context.Context, owner, name string) error {
	return s.admitDeployment(ctx, owner, name, true)
}

func (s *Store) admitDeployment(ctx context.Context, owner, name string, bounded bool) error {
	var has func() (int64, error)
	if bounded {
		has = func() (int64, error) { return s.bytesOfDeployments(ctx, owner, name) }
	}
	err := s.admitTo(ctx, BucketDeployments, owner, deploymentRoom, has)
	if errors.Is(err, errReplaces) {
		return nil
	}
	return err
}

// errReplaces says that a record takes the place of an older one.
var errReplaces = errors.New("it takes the place of an older one")

// bytesOfDeployments is what the deployments of an owner have. The error is errReplaces when the worker has as many as
// are kept.
func (s *Store) bytesOfDeployments(ctx context.Context, owner, name string) (bytes int64, err error) {
	prefix := "$KV." + BucketDeployments + "."
	scan, err := stored.Headers(ctx, s.js.Conn(), resources.BucketStream(BucketDeployments),
		[]string{prefix + key(owner, "*")}, false)
	if err != nil {
		return 0, fmt.Errorf("count the deployments of owner %s: %w", owner, err)
	}
	own := 0
	for m, err := range scan.Messages(ctx) {
		if err != nil {
			return 0, fmt.Errorf("count the deployments of owner %s: %w", owner, err)
		}
		bytes += entryBytes(m.Header)
		if m.Subject == prefix+key(owner, name) {
			own++
		}
	}
	if own >= History {
		return bytes, errReplaces
	}
	return bytes, nil
}

// admitTo returns a *resources.FullError when a bucket has no room for so many bytes, and a *QuotaError when the owner
// would have more of the bucket than is free for all others. has says what the owner has; nil = anything is allowed. It
// is asked only when it matters.
func (s *Store) admitTo(ctx context.Context, bucket, owner string, bytes int64, has func() (int64, error)) error {
	info, err := s.infoOf(ctx, bucket)
	if err != nil {
		return err
	}
	return admitIn(info, bucket, owner, bytes, has)
}

// admitIn does what admitTo does, with what a server has of the bucket.
func admitIn(info *jetstream.StreamInfo, bucket, owner string, bytes int64, has func() (int64, error)) error {
	variable := VariableOf(info.Config.Name)
	most, used := info.Config.MaxBytes, int64(info.State.Bytes)
	switch free := most - used; {
	case most <= 0:
		return nil
	case bytes+most/removalPart > free:
		return &resources.FullError{Bucket: bucket, MaxBytes: most, Variable: variable}
	case has == nil, guard.StoredShares.Off(), used+bytes <= free: // nobody has more than is used
		return nil
	default:
		of, err := has()
		if err != nil {
			return err
		}
		if of+bytes > free {
			return &QuotaError{fmt.Sprintf("owner %s has %d bytes in bucket %s and needs %d more, and %d are left for all owners: an owner may have as much as is left. "+
				"Remove a worker with 'pinwheel workers rm', or have an operator raise %s and run 'pinwheel resources apply'", owner, of, bucket, bytes, free, variable)}
		}
		return nil
	}
}

// streamOf is the stream that holds a bucket.
func (s *Store) streamOf(bucket string) string {
	if bucket == s.cfg.Objects {
		return resources.ObjectsStream(bucket)
	}
	return resources.BucketStream(bucket)
}

// infoOf is what a server has of a bucket.
func (s *Store) infoOf(ctx context.Context, bucket string) (*jetstream.StreamInfo, error) {
	st, err := s.js.Stream(ctx, s.streamOf(bucket))
	if err != nil {
		return nil, fmt.Errorf("size of bucket %s: %w", bucket, err)
	}
	return st.CachedInfo(), nil
}

// full is err, or a *resources.FullError if err says that the bucket has no room.
func (s *Store) full(ctx context.Context, bucket string, err error) error {
	if !resources.IsFull(err) {
		return err
	}
	e := &resources.FullError{Bucket: bucket, Variable: VariableOf(s.streamOf(bucket))}
	if info, err := s.infoOf(ctx, bucket); err == nil {
		e.MaxBytes = info.Config.MaxBytes
	}
	return e
}
