package deploy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/events"
)

// Request says what to deploy, and as which worker.
type Request struct {
	Owner string
	// Name of the worker. Empty: the base name of the source file.
	Name string
	// Path of the source file, or a Bundle that is built already.
	Path   string
	Bundle *Bundle
	// Roots are the directories from which files are read for Path. None: its project (see Build).
	Roots []string
	// Bindings are added to those of the manifest, and replace them.
	events.Bindings
	// Policy of the owner: a worker that asks for more than it allows is refused.
	Policy events.Policy
}

// conflictTries is the most retries of a deploy because another deploy was faster.
const conflictTries = 20

// Deploy bundles, checks and stores a worker, so that each process that watches activates it. It returns the active
// version. changed is false when the active version has the same code and manifest already, so that nothing was stored.
//
// The error is a *SourceError or a *RefusedError when the author must correct something.
func (s *Store) Deploy(ctx context.Context, req Request, check Checker) (w *events.Worker, changed bool, err error) {
	w, changed, err = s.deploy(ctx, req, check)
	result := "unchanged"
	var source *SourceError
	var refused *RefusedError
	switch {
	case errors.As(err, &source), errors.As(err, &refused):
		result = "refused"
	case err != nil:
		result = "error"
	case changed:
		result = "changed"
	}
	s.metrics.deploys.WithLabelValues(result).Inc()
	return w, changed, err
}

func (s *Store) deploy(ctx context.Context, req Request, check Checker) (*events.Worker, bool, error) {
	w, err := newWorker(ctx, req)
	if err != nil {
		return nil, false, err
	}
	tries := backoff.WithMaxRetries(backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(2*time.Millisecond), backoff.WithMaxInterval(100*time.Millisecond)), conflictTries)
	for checked := false; ; {
		kept, err := s.kept(ctx, w.Owner, w.Name)
		if err != nil {
			return nil, false, err
		}
		if active := kept.active(); active != nil && active.Hash == w.Hash {
			// Damaged code is repaired by storing it again.
			if current, err := s.complete(ctx, active); !errors.Is(err, errDamaged) {
				return current, false, err
			}
		}
		if w.Number, err = kept.nextNumber(); err != nil {
			return nil, false, fmt.Errorf("deploy %s: %w", w.Target(), err)
		}
		w.Version, w.DeployedAt = version(w.Number, w.Hash), time.Now().UTC()
		if !checked {
			if err = req.Policy.Allow(w.Limits); err != nil {
				return nil, false, fmt.Errorf("deploy %s: %w", w.Target(), err)
			}
			if w.Handlers, err = load(ctx, *w, check); err != nil {
				return nil, false, err
			}
			if err = checkScheduled(w); err != nil {
				return nil, false, err
			}
			checked = true
		}
		err = s.put(ctx, w, kept)
		if err == nil {
			return w, true, nil
		}
		if wait := tries.NextBackOff(); !isConflict(err) || wait == backoff.Stop || !sleep(ctx, wait) {
			return nil, false, fmt.Errorf("deploy %s: %w", w.Target(), err)
		}
	}
}

// newWorker builds the worker that req asks for. It has no number yet.
func newWorker(ctx context.Context, req Request) (*events.Worker, error) {
	b, name := req.Bundle, req.Name
	if b == nil {
		var err error
		if b, err = Build(ctx, req.Path, req.Roots...); err != nil {
			return nil, err
		}
	}
	if name == "" {
		if name = baseName(b.File); !events.ValidName(name) {
			return nil, fmt.Errorf("%w; give the worker another name than its file's", events.CheckName("worker", name))
		}
	}
	if err := checkTarget(req.Owner, name); err != nil {
		return nil, err
	}
	final := *b
	final.Bindings = b.Bindings.With(req.Bindings)
	if err := validate(final.Spec); err != nil {
		return nil, err
	}
	final.Mode = final.Mode.OrDefault()
	hash, err := final.Hash()
	if err != nil {
		return nil, err
	}
	return &events.Worker{
		Owner: req.Owner, Name: name, Hash: hash, Spec: final.Spec, Code: b.Code, File: b.File, SourceMap: b.SourceMap,
	}, nil
}

// put stores w, if the bucket still has k.
func (s *Store) put(ctx context.Context, w *events.Worker, k kept) error {
	r := newRecord(w)
	text, object, err := r.encode(s.inline)
	if err != nil {
		return err
	}
	// The object comes first: a record must never refer to a missing object.
	if object != nil {
		if _, err := s.objects.PutBytes(ctx, objectName(w.Owner, w.Name, w.Hash), object); err != nil {
			return fmt.Errorf("store bundle: %w", err)
		}
	}
	if _, err := s.kv.Update(ctx, key(w.Owner, w.Name), text, k.revision); err != nil {
		return fmt.Errorf("store record: %w", err)
	}
	if len(k.records) >= History {
		outlived := k.records[:len(k.records)-History+1]
		s.deleteObjects(ctx, outlived, append(k.records[len(outlived):], r))
	}
	return nil
}

// deleteObjects deletes the objects of records that are gone, unless a record that stays has the same object. An object
// that cannot be deleted only costs space.
func (s *Store) deleteObjects(ctx context.Context, gone, stay []*record) {
	for _, r := range gone {
		if r.Object == "" || slices.ContainsFunc(stay, func(o *record) bool { return o.Hash == r.Hash }) {
			continue
		}
		if err := s.objects.Delete(ctx, r.Object); err != nil && !errors.Is(err, jetstream.ErrObjectNotFound) {
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
			if err := s.kv.Purge(ctx, key(owner, name)); err != nil {
				return fmt.Errorf("remove worker %s/%s: %w", owner, name, err)
			}
		}
		return fmt.Errorf("%w: %s/%s", ErrNotFound, owner, name)
	}
	if err := s.kv.Purge(ctx, key(owner, name)); err != nil {
		return fmt.Errorf("remove worker %s/%s: %w", owner, name, err)
	}
	s.deleteObjects(ctx, k.records, nil)
	return nil
}

// isConflict reports whether another deploy was first.
func isConflict(err error) bool { return errors.Is(err, jetstream.ErrKeyRevisionMismatch) }

// sleep waits for d, and reports whether ctx let it.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
