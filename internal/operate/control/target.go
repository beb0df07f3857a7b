package control

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/events"
)

// keptTargets is the highest number of answers that WhoRuns caches.
const keptTargets = 1000

// WhoRuns returns a function that checks whether a worker, in a version, is deployed and would run a replay. The
// function is for one command or job, because it looks up each worker only once.
func WhoRuns(store func(context.Context) (*deploy.Store, error)) func(ctx context.Context, owner, worker,
	version string) error {
	type target struct{ owner, worker, version string }
	known := map[target]error{}
	var s *deploy.Store
	return func(ctx context.Context, owner, worker, version string) (err error) {
		t := target{owner, worker, version}
		if err, ok := known[t]; ok {
			return err
		}
		if s == nil {
			if s, err = store(ctx); err != nil {
				return err
			}
		}
		err = isDeployed(ctx, s, owner, worker, version)
		if err == nil || errors.Is(err, deploy.ErrNotFound) {
			if len(known) == keptTargets {
				clear(known)
			}
			known[t] = err
		}
		return err
	}
}

// isDeployed returns an error when a worker, or a version of it, is missing. The error says which ones exist.
func isDeployed(ctx context.Context, s *deploy.Store, owner, worker, version string) error {
	in, err := s.Installation(ctx, owner, worker)
	if errors.Is(err, deploy.ErrNotFound) {
		return fmt.Errorf("%w; 'pinwheel workers ls --owner %s' lists those there are", err, owner)
	}
	switch {
	case err != nil:
		return err
	case version == "" && in.Active() == nil:
		return fmt.Errorf("%w: %s/%s has no active version; 'pinwheel promote' makes one active", deploy.ErrNotFound, owner, worker)
	case version == "" || in.Deployment.Aliases[version] != "":
		return nil
	}
	names := make([]string, len(in.Versions))
	for i, w := range in.Versions {
		if version == w.Version || version == strconv.Itoa(w.Number) {
			return nil
		}
		names[i] = w.Version
	}
	return fmt.Errorf("%w: %s/%s has no version %s; it has %s", deploy.ErrNoVersion, owner, worker, version,
		strings.Join(names, ", "))
}

// SplitWorker splits OWNER/WORKER, the form that lists show, into owner and worker.
func SplitWorker(owner, worker *string) error {
	o, w, both := strings.Cut(*worker, "/")
	if !both {
		return nil
	}
	if _, _, err := events.ParseTarget(*worker); err != nil && o != Nameless && w != Nameless {
		return wrongName("worker", err)
	}
	if *owner != "" && *owner != o {
		return wrongField("worker", " %q is of owner %s, and not of %s", *worker, o, *owner)
	}
	*owner, *worker = o, w
	return nil
}

// CheckName checks the name in a filter. An empty name chooses all.
func CheckName(field, name string) error {
	if name == "" {
		return nil
	}
	if err := events.CheckName(field, name); err != nil {
		return wrongName(field, err)
	}
	return nil
}
