package assetstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/deploy/assets"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
)

// deploysKey is a key that each deploy of an owner changes when it begins and when it ends. It is no hash.
func deploysKey(owner string) string { return owner + ".deploys" }

// Deploy is a deploy of an owner that uses stored files. While it is under way, another deploy may sweep.
type Deploy struct {
	s        *Store
	owner    string
	revision uint64 // of deploysKey; 0 = BeginOver
}

// Begin begins a deploy.
func (s *Store) Begin(ctx context.Context, owner string) (*Deploy, error) {
	revision, err := s.mark(ctx, owner, 0)
	if err != nil {
		return nil, storeError(err)
	}
	return &Deploy{s: s, owner: owner, revision: revision}, nil
}

// End ends a deploy whose version is stored. It stores again what another deploy has swept meanwhile. alone reports
// whether no other deploy of the owner began: then this one may sweep.
func (d *Deploy) End(ctx context.Context, f *assets.Folder) (alone bool, err error) {
	revision, err := d.s.mark(ctx, d.owner, d.revision)
	if alone = err == nil; !alone {
		if !isConflict(err) {
			return false, storeError(err)
		}
		if revision, err = d.s.mark(ctx, d.owner, 0); err != nil {
			return false, storeError(err)
		}
	}
	d.revision = revision
	if f == nil {
		return alone, nil
	}
	_, err = d.s.Upload(ctx, d.owner, f)
	return alone, err
}

// Sweep deletes the files of the owner that are not among keepFiles, and that no list of keep names. It stops when
// another deploy of the owner begins. It returns how many files it deleted.
func (d *Deploy) Sweep(ctx context.Context, keep []string, keepFiles ...string) (int, error) {
	kv, err := d.s.bucket(ctx)
	if err != nil {
		return 0, err
	}
	_, counted, err := usageOf(ctx, kv, d.owner)
	if err != nil {
		return 0, err
	}
	files, err := entriesOf(ctx, kv, d.owner)
	if err != nil {
		return 0, err
	}
	stream, err := d.s.js.Stream(ctx, resources.BucketStream(Bucket))
	if err != nil {
		return 0, fmt.Errorf("sweep bucket %s: %w", Bucket, err)
	}
	kept := usage{}
	if kept.Bytes, err = d.removeCut(ctx, kv, stream, files); err != nil {
		return 0, fmt.Errorf("sweep bucket %s: %w", Bucket, err)
	}
	keepFile := func(hash string) {
		if stored, ok := files[hash]; ok {
			kept.Bytes += stored.Size + FileCost
		}
		delete(files, hash)
	}
	for _, hash := range keep {
		l, err := d.s.List(ctx, d.owner, hash)
		if err != nil {
			return 0, err
		}
		keepFile(hash)
		for _, f := range l.Files {
			keepFile(f.Hash)
		}
	}
	for _, hash := range keepFiles {
		keepFile(hash)
	}
	n := 0
	for hash := range files {
		if err := d.remove(ctx, kv, stream, hash); err != nil {
			return n, fmt.Errorf("sweep bucket %s: %w", Bucket, err)
		}
		n++
	}
	if counted > 0 { // what was stored meanwhile has changed the number, and counts until the next time
		if err = setUsage(ctx, kv, d.owner, kept, counted); isConflict(err) || resources.IsFull(err) {
			err = nil
		}
	}
	return n, err
}

// removeCut deletes the parts of files that were not stored to their end. Those that may still be stored stay: young is
// how many bytes they have at most.
func (d *Deploy) removeCut(ctx context.Context, kv jetstream.KeyValue, stream jetstream.Stream,
	whole map[string]assets.Stored) (young int64, err error) {
	old := map[string]uint64{} // by hash, the last sequence
	err = eachOf(ctx, kv, d.owner+".*.*.*", func(e jetstream.KeyValueEntry) error {
		hash, _, _ := strings.Cut(e.Key()[len(d.owner)+1:], ".")
		switch _, ok := whole[hash]; {
		case ok:
		case time.Since(e.Created()) > d.s.young:
			old[hash] = max(old[hash], e.Revision())
		default:
			young += assets.PartBytes
		}
		return nil
	}, jetstream.MetaOnly())
	for hash, last := range old {
		if err == nil {
			err = stream.Purge(ctx, jetstream.WithPurgeSubject(subject(fileKey(d.owner, hash))+".>"),
				jetstream.WithPurgeSequence(last+1))
		}
	}
	return young, err
}

// remove deletes a file, unless a deploy has begun. A deploy that begins afterwards finds no key, and stores all parts
// again, behind the sequence up to which the old ones are purged.
func (d *Deploy) remove(ctx context.Context, kv jetstream.KeyValue, stream jetstream.Stream, hash string) error {
	key := fileKey(d.owner, hash)
	if over, err := d.over(ctx, kv); err != nil {
		return err
	} else if over {
		if err = stream.Purge(ctx, jetstream.WithPurgeSubject(subject(key))); err != nil {
			return err
		}
		return stream.Purge(ctx, jetstream.WithPurgeSubject(subject(key)+".>"))
	}
	marker := func() (*jetstream.PubAck, error) {
		return d.s.js.PublishMsg(ctx, &nats.Msg{Subject: subject(key), Header: nats.Header{
			"KV-Operation": {"PURGE"}, jetstream.MsgRollup: {jetstream.MsgRollupSubject},
			jetstream.ExpectedLastSubjSeqHeader:     {strconv.FormatUint(d.revision, 10)},
			jetstream.ExpectedLastSubjSeqSubjHeader: {subject(deploysKey(d.owner))},
		}})
	}
	ack, err := marker()
	if resources.IsFull(err) {
		if d.revision, err = d.s.markSpared(ctx, kv, d.owner, d.revision); err == nil {
			ack, err = marker()
		}
	}
	if err != nil {
		return err
	}
	if err = stream.Purge(ctx, jetstream.WithPurgeSubject(subject(key)+".>"),
		jetstream.WithPurgeSequence(ack.Sequence)); err != nil {
		return err
	}
	// the marker
	return stream.Purge(ctx, jetstream.WithPurgeSubject(subject(key)), jetstream.WithPurgeSequence(ack.Sequence+1))
}
