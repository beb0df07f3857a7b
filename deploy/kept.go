package deploy

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
)

// kept is what the buckets have for a worker.
type kept struct {
	records    []*record        // readable, oldest first
	entries    int              // records, with those that cannot be read
	oldest     uint64           // revision of the first of them
	revision   uint64           // of the newest entry of any kind; 0 = there is none
	newest     error            // why the newest entry cannot be read
	deployment storedDeployment // the zero value: there is none
}

func (s *Store) kept(ctx context.Context, owner, name string) (kept, error) {
	// The deployment comes first: all versions that it names are older.
	d, err := s.deployment(ctx, owner, name)
	if err != nil {
		return kept{}, err
	}
	entries, err := s.kv.History(ctx, key(owner, name))
	if err != nil && !errors.Is(err, jetstream.ErrKeyNotFound) {
		return kept{}, fmt.Errorf("read worker %s/%s: %w", owner, name, err)
	}
	k := kept{deployment: d}
	for _, e := range entries {
		k.revision, k.newest = e.Revision(), nil
		if e.Operation() != jetstream.KeyValuePut {
			k.records, k.entries, k.oldest = nil, 0, 0
			continue
		}
		if k.entries++; k.entries == 1 {
			k.oldest = e.Revision()
		}
		r, err := s.decode(e)
		if k.newest = err; err == nil {
			k.records = append(k.records, r)
		}
	}
	return k, nil
}

// last is the newest version; nil = there is none, or it cannot be read.
func (k kept) last() *record {
	if len(k.records) == 0 || k.newest != nil {
		return nil
	}
	return k.records[len(k.records)-1]
}

// outlives returns an error when storing another version would drop one that the deployment names.
func (k kept) outlives() error {
	if k.entries < History || len(k.records) < History {
		return nil
	}
	d, oldest := k.effective(), k.records[0].version()
	if !d.Names(oldest) {
		return nil
	}
	what := "is active"
	if a := d.AliasesOf(oldest); len(a) > 0 {
		what = "has the alias " + a[0]
	}
	return fmt.Errorf("version %s %s, and would be dropped: %d versions are kept; promote another one, or remove the alias", oldest, what, History)
}

// nextNumber is the number of the next version. A newest record that cannot be read may have any number.
func (k kept) nextNumber() (int, error) {
	if k.newest != nil {
		return 0, fmt.Errorf("the newest version cannot be read: %w; "+
			"remove the worker, or deploy with the Pinwheel that stored it", k.newest)
	}
	if r := k.last(); r != nil {
		return r.Number + 1, nil
	}
	return 1, nil
}

// effective is the deployment that holds now.
func (k kept) effective() workers.Deployment {
	h := history{oldest: k.oldest, unreadable: k.entries > len(k.records)}
	for _, r := range k.records {
		h.versions = append(h.versions, r.stored())
	}
	return h.effective(k.deployment)
}

// installation is the worker with the kept versions, without their code.
func (k kept) installation() workers.Installation {
	in := workers.Installation{Owner: k.records[0].Owner, Name: k.records[0].Name, Deployment: k.effective()}
	for _, r := range k.records {
		w := *r
		w.Bundle = nil
		in.Versions = append(in.Versions, w.worker())
	}
	return in
}

// find returns the record of a version: the whole version, its number, or an alias; "" = the active one.
func (k kept) find(version string) *record {
	d := k.effective()
	if of, ok := d.Aliases[version]; ok {
		version = of
	}
	if version == "" {
		version = d.Base()
	}
	i := slices.IndexFunc(k.records, func(r *record) bool {
		return version == r.version() ||
			version == fmt.Sprint(r.Number)
	})
	if i < 0 {
		return nil
	}
	return k.records[i]
}

// supersedes is the version that holds in place of deployment d because it was stored after revision seen of the
// worker, the newest that d knew; "" = there is none. A later promotion of a version that d knew is a change after d.
func (k kept) supersedes(d workers.Deployment, seen uint64) string {
	holds := k.effective()
	if holds.Number <= d.Number || len(holds.Split) != 1 || d.Names(holds.Base()) {
		return ""
	}
	r := k.find(holds.Base())
	if r == nil || r.revision <= seen {
		return ""
	}
	return r.version()
}

// deleteObjects deletes the objects of records that are gone, unless a record that stays has the same object. An object
// that cannot be deleted only costs space.
func (s *Store) deleteObjects(ctx context.Context, gone, stay []*record) {
	for _, r := range gone {
		if r.Object == "" || slices.ContainsFunc(stay, func(o *record) bool { return o.Hash == r.Hash }) {
			continue
		}
		if err := s.deleteObject(ctx, r.Object); err != nil && !errors.Is(err, jetstream.ErrObjectNotFound) {
			s.cfg.Log.Warn().Err(err).Str("object", r.Object).Msg("bundle of an old version not deleted")
		}
	}
}

// Remove deletes a worker with all its versions, code and vars. Each process that watches removes it. The error is
// ErrNotFound when there is no such worker. A later deploy counts from 1 again.
func (s *Store) Remove(ctx context.Context, owner, name string) error {
	if err := checkTarget(owner, name); err != nil {
		return err
	}
	k, err := s.kept(ctx, owner, name)
	if err != nil {
		return err
	}
	if len(k.records) == 0 && k.newest == nil {
		// A process may still run it, if its record has vanished. The marker ends it there.
		if k.revision == 0 {
			if err := s.purge(ctx, s.kv, key(owner, name)); err != nil {
				return fmt.Errorf("remove worker %s/%s: %w", owner, name, err)
			}
		}
		return notFound(owner, name)
	}
	if err := s.purge(ctx, s.kv, key(owner, name)); err != nil {
		return fmt.Errorf("remove worker %s/%s: %w", owner, name, err)
	}
	if len(k.records) > 0 {
		s.routes.leave(ctx, k.installation(), nil)
	}
	s.deleteObjects(ctx, k.records, nil)
	sweep(ctx, s, owner, k.records)
	// It comes last: without it, the newest version would be active for a moment.
	if k.deployment.exists() {
		if err := s.purge(ctx, s.deployments, key(owner, name)); err != nil {
			return fmt.Errorf("remove deployments of %s/%s: %w", owner, name, err)
		}
	}
	return nil
}

// purge removes a key with its history, and leaves a marker. A full bucket takes no marker before it has lost the rest.
// Processes keep what has vanished until the marker comes.
func (s *Store) purge(ctx context.Context, kv jetstream.KeyValue, key string) error {
	err := kv.Purge(ctx, key)
	if !resources.IsFull(err) {
		return err
	}
	if err := s.purgeSubject(ctx, resources.BucketStream(kv.Bucket()), "$KV."+kv.Bucket()+"."+key); err != nil {
		return err
	}
	return s.full(ctx, kv.Bucket(), kv.Purge(ctx, key))
}

// deleteObject deletes an object. A full store takes no marker of that before it has lost the chunks.
func (s *Store) deleteObject(ctx context.Context, name string) error {
	err := s.objects.Delete(ctx, name)
	if !resources.IsFull(err) {
		return err
	}
	info, err := s.objects.GetInfo(ctx, name)
	if err != nil {
		return err
	}
	if err := s.purgeSubject(ctx, resources.ObjectsStream(s.cfg.Objects), "$O."+s.cfg.Objects+".C."+
		info.NUID); err != nil {
		return err
	}
	return s.full(ctx, s.cfg.Objects, s.objects.Delete(ctx, name))
}

func (s *Store) purgeSubject(ctx context.Context, stream, subject string) error {
	st, err := s.js.Stream(ctx, stream)
	if err != nil {
		return err
	}
	return st.Purge(ctx, jetstream.WithPurgeSubject(subject))
}
