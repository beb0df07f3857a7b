package deploy

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// CheckSources asks the servers whether the sources of a worker can be consumed. Its error is a *workers.SourceFault
// when they cannot, whatever the time.
type CheckSources func(ctx context.Context, w *workers.Worker) error

// admitSources refuses a worker with a source that its owner is not granted, or that is not there.
func admitSources(ctx context.Context, check CheckSources, w *workers.Worker, req Request) error {
	if len(w.Sources) == 0 {
		return nil
	}
	err := req.Policy.MayConsumeAll(w.Sources)
	if err == nil {
		if check == nil {
			return fmt.Errorf("deploy %s: its sources cannot be checked here: a process of the fleet must deploy it",
				w.Target())
		}
		var fault *workers.SourceFault
		if err = check(ctx, w); err == nil {
			return nil
		} else if !errors.As(err, &fault) {
			return fmt.Errorf("deploy %s: sources are not checked: %w", w.Target(), err)
		}
		err = fault
	}
	if fault := req.Bundle.Refuse(err); fault != nil {
		return fault
	}
	return &QuotaError{fmt.Sprintf("deploy %s: %v", w.Target(), err)}
}

// takesTasks reports whether a worker runs what its sources bring.
func takesTasks(w *workers.Worker) bool { return w.Queue || slices.Contains(w.Handlers, events.Task) }
