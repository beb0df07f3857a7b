package assetstore

import (
	"context"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/deploy/assets"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
)

// pendingFile is a file that is to be stored.
type pendingFile struct {
	hash     string
	size     int64
	compress bool // it is stored compressed too, where that makes it smaller
	read     func() ([]byte, error)
	made     bool             // copies are made
	copies   []compressedCopy // until they are stored
}

// compressed reports whether the file may have compressed copies.
func (f *pendingFile) compressed() bool { return f.compress && f.size >= leastCompressed }

// smaller returns the compressed copies of the file, which has data. It makes them once.
func (f *pendingFile) smaller(ctx context.Context, data []byte) (copies []compressedCopy, err error) {
	if f.compressed() && !f.made {
		f.copies, err = copiesOf(ctx, data)
		f.made = err == nil
	}
	return f.copies, err
}

// admit asks whether the bucket has room for files, before any of them is stored. How small they are when compressed
// is found out only where it matters, because it takes time.
func (s *Store) admit(ctx context.Context, owner string, files []*pendingFile, bounded bool) error {
	if s.cfg.Room == nil || len(files) == 0 {
		return nil
	}
	room, err := s.cfg.Room(ctx, owner, bounded)
	if err != nil {
		return err
	}
	least, most := int64(0), int64(0)
	for _, f := range files {
		n := entryBytes(owner, f.size)
		least += n
		if most += n; f.compressed() {
			most += 2 * entryBytes(owner, f.size/10*9)
		}
	}
	if room(most) == nil {
		return nil
	}
	exact := least
	for _, f := range files {
		// The copies stay in memory until they are stored: so no more are made than there is room for.
		if err := room(exact); err != nil {
			return err
		}
		if !f.compressed() {
			continue
		}
		data, err := f.read()
		if err != nil {
			return err
		}
		copies, err := f.smaller(ctx, data)
		if err != nil {
			return err
		}
		for _, c := range copies {
			exact += entryBytes(owner, int64(len(c.data)))
		}
	}
	return room(exact)
}

// messageBytes is what a message takes in the bucket beside its data and its owner's name: the longest subject, and
// what JetStream stores with each.
const messageBytes = 160

// entryBytes is what a file of so many bytes takes in one encoding: its parts, and a key.
func entryBytes(owner string, size int64) int64 {
	parts := (size + assets.PartBytes - 1) / assets.PartBytes
	return size + (parts+1)*int64(messageBytes+len(owner))
}

// spareBytes is what the key of an owner's deploys holds for nothing. A full bucket takes no message, and so no marker
// of a removal: giving these bytes up makes room for the first.
const spareBytes = 1 << 10

// mark changes the key of an owner's deploys. last is its revision, or 0 for any. A bucket that is full takes the
// message only when the one before is gone.
func (s *Store) mark(ctx context.Context, owner string, last uint64) (uint64, error) {
	kv, err := s.bucket(ctx)
	if err != nil {
		return 0, err
	}
	key, revision := deploysKey(owner), uint64(0)
	if last == 0 {
		revision, err = kv.Put(ctx, key, make([]byte, spareBytes))
	} else {
		revision, err = kv.Update(ctx, key, make([]byte, spareBytes), last)
	}
	if resources.IsFull(err) {
		return s.markSpared(ctx, kv, owner, last)
	}
	return revision, err
}

// markSpared is mark without the spare bytes. The message before is removed first. A deploy that has begun meanwhile
// keeps its message: then this is a conflict.
func (s *Store) markSpared(ctx context.Context, kv jetstream.KeyValue, owner string, last uint64) (uint64, error) {
	stream, err := s.js.Stream(ctx, resources.BucketStream(Bucket))
	if err != nil {
		return 0, err
	}
	key := deploysKey(owner)
	before := []jetstream.StreamPurgeOpt{jetstream.WithPurgeSubject(subject(key))}
	if last > 0 {
		before = append(before, jetstream.WithPurgeSequence(last+1))
	}
	if err := stream.Purge(ctx, before...); err != nil {
		return 0, err
	}
	return kv.Update(ctx, key, nil, 0)
}

// BeginOver is Begin for a sweep of a bucket that has more than it may have, as one may whose size was lowered. It
// takes no message until much is removed, so no deploy can begin there either. Those that had begun find their key
// gone, and store again what they lack.
func (s *Store) BeginOver(owner string) *Deploy { return &Deploy{s: s, owner: owner} }

// over reports whether the bucket still takes no message. Once it does, the sweep has begun as others do.
func (d *Deploy) over(ctx context.Context, kv jetstream.KeyValue) (bool, error) {
	if d.revision > 0 {
		return false, nil
	}
	revision, err := kv.Update(ctx, deploysKey(d.owner), nil, 0)
	if resources.IsFull(err) {
		return true, nil
	}
	d.revision = revision
	return false, err
}
