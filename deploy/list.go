package deploy

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
)

// List is each worker of an owner, or of all owners if owner is empty, with its deployment and the versions that this
// divides events among. It is sorted by owner and name, and has no code.
func (s *Store) List(ctx context.Context, owner string) ([]workers.Installation, error) {
	filter := "*.*"
	if owner != "" {
		if err := events.CheckName("owner", owner); err != nil {
			return nil, err
		}
		filter = owner + ".*"
	}
	deployments := map[string]storedDeployment{}
	err := each(ctx, s.deployments, filter, func(e jetstream.KeyValueEntry) error {
		d, err := decodeDeployment(e)
		if err != nil {
			s.unreadable(e.Key(), e.Revision(), err)
		}
		deployments[e.Key()] = d
		return nil
	})
	if err != nil {
		return nil, err
	}
	var list []workers.Installation
	err = each(ctx, s.kv, filter, func(e jetstream.KeyValueEntry) error {
		in, ok, err := s.listed(ctx, e, deployments)
		if ok {
			list = append(list, in)
		}
		return err
	})
	slices.SortFunc(list, func(a, b workers.Installation) int { return strings.Compare(a.Target(), b.Target()) })
	return list, err
}

// listed is the worker whose newest entry is e. ok is false when nothing of it can be read.
func (s *Store) listed(ctx context.Context, e jetstream.KeyValueEntry,
	deployments map[string]storedDeployment) (in workers.Installation, ok bool, err error) {
	d, deployed := deployments[e.Key()]
	r, err := s.decode(e)
	// Mostly, the newest version has everything, and the rest of the history need not be read.
	switch {
	case err == nil && deployed && only(d.Deployment, r.version()):
		in = workers.Only(r.worker())
		in.Deployment = d.Deployment
	case err == nil && !deployed && !r.Staged:
		in = workers.Only(r.worker())
	case err != nil && !deployed:
		return in, false, nil // logged
	default:
		owner, name, _ := strings.Cut(e.Key(), ".")
		if in, err = s.Installation(ctx, owner, name); err != nil {
			if ctx.Err() == nil {
				s.cfg.Log.Error().Err(err).Str("worker", e.Key()).Msg("a worker cannot be listed")
				err = nil
			}
			return in, false, err
		}
		in.Versions = slices.DeleteFunc(in.Versions, func(w *workers.Worker) bool {
			return w.Version != in.Deployment.Base() && w.Version != in.Deployment.Candidate().Version
		})
	}
	for _, w := range in.Versions {
		w.Code, w.SourceMap = "", nil
	}
	return in, true, nil
}

// only reports whether that version has everything.
func only(d workers.Deployment, version string) bool { return len(d.Split) == 1 && d.Base() == version }

// each calls f with the newest entry of each key.
func each(ctx context.Context, kv jetstream.KeyValue, filter string, f func(jetstream.KeyValueEntry) error) error {
	watch, err := kv.Watch(ctx, filter, jetstream.IgnoreDeletes())
	if err != nil {
		return fmt.Errorf("list %s: %w", kv.Bucket(), err)
	}
	defer resources.StopWatch(watch)
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("list %s: %w", kv.Bucket(), ctx.Err())
		case e, ok := <-watch.Updates():
			if !ok {
				return fmt.Errorf("list %s: the connection was closed", kv.Bucket())
			}
			if e == nil {
				return nil
			}
			if err := f(e); err != nil {
				return err
			}
		}
	}
}
