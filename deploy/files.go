package deploy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/deploy/assets"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/env/assetstore"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
	"github.com/pinwheel-run/pinwheel/internal/lib/stored"
)

// uploading is what a deploy stores of the files of its version.
type uploading struct {
	store  *assetstore.Store
	refuse func(ctx context.Context, owner string, err error) error
	files  *assets.Folder // nil = none come with the version
	stored bool           // its owner has stored them, and the modules, by itself
	under  *assetstore.Deploy
	done   assetstore.Uploaded
}

// upload stores the files, before the version that names them.
func (u *uploading) upload(ctx context.Context, w *workers.Worker) (err error) {
	if u.files == nil && (!u.stored || w.Assets == nil) && len(w.Modules) == 0 || u.under != nil {
		return nil
	}
	if u.under, err = u.store.Begin(ctx, w.Owner); err == nil {
		err = u.put(ctx, w)
	}
	if err = u.refuse(ctx, w.Owner, err); err != nil {
		return fmt.Errorf("deploy %s: %w", w.Target(), err)
	}
	return nil
}

// put stores what is missing. Of what the owner has stored by itself, it checks that it is there.
func (u *uploading) put(ctx context.Context, w *workers.Worker) (err error) {
	if u.stored {
		return u.check(ctx, w)
	}
	if u.files != nil {
		if u.done, err = u.store.Upload(ctx, w.Owner, u.files); err != nil {
			return err
		}
	}
	return u.putModules(ctx, w)
}

func (u *uploading) putModules(ctx context.Context, w *workers.Worker) error {
	if len(w.Modules) == 0 {
		return nil
	}
	files := make([]NewFile, len(w.Modules))
	for i, m := range w.Modules {
		files[i] = NewFile{Hash: m.Hash, Data: m.Code}
	}
	up, err := u.store.Add(ctx, w.Owner, files, -1)
	u.done.Files += up.Files
	u.done.Bytes += up.Bytes
	return err
}

// check checks that everything is there that the owner has stored by itself.
func (u *uploading) check(ctx context.Context, w *workers.Worker) error {
	if w.Assets != nil {
		err := u.store.Check(ctx, w.Owner, w.Assets.Files)
		var wrong *assetstore.WrongError
		if errors.As(err, &wrong) {
			return &InvalidError{err}
		}
		if err != nil {
			return err
		}
	}
	missing, err := u.store.Missing(ctx, w.Owner, hashesOf(w.Modules))
	if err == nil && len(missing) > 0 {
		err = &MissingFilesError{Files: len(missing)}
	}
	return err
}

// end stores again what another deploy has deleted meanwhile. What the owner has stored by itself, it has to store
// again.
func (u *uploading) end(ctx context.Context, w *workers.Worker) error {
	if u.under == nil {
		return nil
	}
	_, err := u.under.End(ctx, u.files)
	switch {
	case err != nil:
	case u.stored:
		err = u.check(ctx, w)
	default:
		err = u.putModules(ctx, w)
	}
	return u.refuse(ctx, w.Owner, err)
}

// roomForFiles returns what admitTo does, for files of an owner. It counts what the owner has once at most.
func (s *Store) roomForFiles(ctx context.Context, owner string, bounded bool) (func(bytes int64) error, error) {
	var has func() (int64, error)
	if bounded {
		has = sync.OnceValues(func() (int64, error) { return s.bytesOfFiles(ctx, owner) })
	}
	info, err := s.infoOf(ctx, assetstore.Bucket)
	return func(bytes int64) error { return admitIn(info, assetstore.Bucket, owner, bytes, has) }, err
}

// bytesOfFiles is what the files of an owner have in the bucket, with their compressed copies.
func (s *Store) bytesOfFiles(ctx context.Context, owner string) (bytes int64, err error) {
	scan, err := stored.Headers(ctx, s.js.Conn(), resources.BucketStream(assetstore.Bucket),
		[]string{"$KV." + assetstore.Bucket + "." + key(owner, ">")}, false)
	if err != nil {
		return 0, fmt.Errorf("count the files of owner %s: %w", owner, err)
	}
	for m, err := range scan.Messages(ctx) {
		if err != nil {
			return 0, fmt.Errorf("count the files of owner %s: %w", owner, err)
		}
		bytes += entryBytes(m.Header)
	}
	return bytes, nil
}

// refuseFiles is err, or a *resources.FullError when err says that the bucket of files has no room. Where there is no
// room, files that no version has are deleted, so that the next try has theirs. Parts of a deploy that is refused are
// among them: it is not tried again here.
func (s *Store) refuseFiles(ctx context.Context, owner string, err error) error {
	if err = s.full(ctx, assetstore.Bucket, err); noRoom(err) {
		if err := sweepFiles(ctx, s, owner); err != nil {
			s.cfg.Log.Warn().Err(err).Str("owner", owner).Msg("unused files of an owner could not be deleted")
		}
	}
	return err
}

// noRoom reports whether files are refused because the bucket is full, or because their owner may not have more. What
// its policy can never allow is refused for another reason: no removal makes room for that.
func noRoom(err error) bool {
	var full *resources.FullError
	var share *QuotaError
	var policy *assetstore.FullError
	return errors.As(err, &full) || errors.As(err, &share) ||
		errors.As(err, &policy) && policy.More <= policy.Most
}

// NewFile is a file to store.
type NewFile = assetstore.NewFile

// MissingFilesError says that files of a version are not stored.
type MissingFilesError = assetstore.MissingError

// MissingFiles returns the hashes of which an owner has stored no file.
func MissingFiles(ctx context.Context, s *Store, owner string, hashes []string) ([]string, error) {
	return s.files.Missing(ctx, owner, hashes)
}

// AddFiles stores files of an owner, so that its next deploy finds them. With bounded, all that it has stored may have
// as many bytes as its policy says. The error is a *QuotaError or an *InvalidError when the owner must correct
// something, and a *resources.FullError when the bucket has no room.
//
// When there is no room, whatever has none, files that no version has are deleted, and the new ones tried once more.
// What the owner has stored for a deploy which it has not begun is deleted too.
func AddFiles(ctx context.Context, s *Store, owner string, files []NewFile, p workers.Policy,
	bounded bool) (assetstore.Uploaded, error) {
	most := int64(-1)
	if bounded {
		most = assetBytes(p)
	}
	up, err := s.files.Add(ctx, owner, files, most)
	if err = s.refuseFiles(ctx, owner, err); noRoom(err) {
		up, err = s.files.Add(ctx, owner, files, most)
		err = s.full(ctx, assetstore.Bucket, err)
	}
	var wrong *assetstore.WrongError
	var policy *assetstore.FullError
	switch {
	case errors.As(err, &wrong):
		err = &InvalidError{err}
	case errors.As(err, &policy):
		err = &QuotaError{fmt.Sprintf("files of owner %s are refused: %v: %s", owner, policy, moreFiles)}
	}
	return up, err
}

const moreFiles = "remove a worker with 'pinwheel workers rm', or ask the fleet's operators for more"

func assetBytes(p workers.Policy) int64 {
	return int64(cmp.Or(p.AssetBytes, workers.DefaultAssetBytes))
}

// MayHaveFiles returns a *QuotaError if the policy of an owner leaves no room for so many files of so many bytes,
// whatever else is stored.
func MayHaveFiles(owner string, p workers.Policy, files int, bytes int64) error {
	if cost := bytes + int64(files)*assetstore.FileCost; cost > assetBytes(p) {
		return &QuotaError{fmt.Sprintf("files of owner %s are refused: they have %d bytes, each file counting %d more than it has, and all may have %d (assetBytes): %s",
			owner, cost, assetstore.FileCost, assetBytes(p), moreFiles)}
	}
	return nil
}

// sweep deletes the files of an owner that no kept version has, because gone had some. A file that cannot be deleted
// only costs space.
func sweep(ctx context.Context, s *Store, owner string, gone []*record) {
	for _, r := range gone {
		if r.Assets == nil && len(r.Modules) == 0 {
			continue
		}
		if err := sweepFiles(ctx, s, owner); err != nil {
			s.cfg.Log.Warn().Err(err).Str("owner", owner).Msg("files of old versions not deleted")
		}
		return
	}
}

func sweepFiles(ctx context.Context, s *Store, owner string) error {
	d, err := s.files.Begin(ctx, owner)
	over := resources.IsFull(err)
	switch {
	case over:
		d = s.files.BeginOver(owner)
	case err != nil:
		return err
	}
	var lists, modules []string
	err = each(ctx, s.kv, owner+".*", func(e jetstream.KeyValueEntry) error {
		_, name, _ := strings.Cut(e.Key(), ".")
		k, err := s.kept(ctx, owner, name)
		for _, r := range k.records {
			if r.Assets != nil && r.Assets.Files != "" {
				lists = append(lists, r.Assets.Files)
			}
			for _, m := range r.Modules {
				modules = append(modules, m.Hash)
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	if !over {
		if alone, err := d.End(ctx, nil); err != nil || !alone {
			return err // the deploy that began meanwhile may need anything
		}
	}
	_, err = d.Sweep(ctx, lists, modules...)
	return err
}
