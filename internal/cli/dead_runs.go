package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/events"
)

// keptTargets is how many answers of whoRuns are kept at most.
const keptTargets = 1000

// whoRuns says whether there is a worker, in a version, that would run a replay. It is for one command or job: what it has seen it does not look up again.
func whoRuns(store func(context.Context) (*deploy.Store, error)) func(ctx context.Context, owner, worker, version string) error {
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

// isDeployed returns an error that says what there is when a worker, or a version of it, is not there.
func isDeployed(ctx context.Context, s *deploy.Store, owner, worker, version string) error {
	versions, err := s.Versions(ctx, owner, worker)
	if errors.Is(err, deploy.ErrNotFound) {
		return fmt.Errorf("%w; 'pinwheel workers ls --owner %s' lists those there are", err, owner)
	}
	if err != nil || version == "" {
		return err
	}
	names := make([]string, len(versions))
	for i, w := range versions {
		if version == w.Version || version == strconv.Itoa(w.Number) {
			return nil
		}
		names[i] = w.Version
	}
	return fmt.Errorf("%w: %s/%s has no version %s; it has %s", deploy.ErrNotFound, owner, worker, version, strings.Join(names, ", "))
}

// splitWorker takes OWNER/WORKER, as lists show it, for what names a worker beside its owner.
func splitWorker(owner, worker *string) error {
	o, w, both := strings.Cut(*worker, "/")
	if !both {
		return nil
	}
	if _, _, err := events.ParseTarget(*worker); err != nil && o != nobody && w != nobody {
		return usage("--%w", err)
	}
	if *owner != "" && *owner != o {
		return usage("--worker %q is of owner %s, and not of %s", *worker, o, *owner)
	}
	*owner, *worker = o, w
	return nil
}
