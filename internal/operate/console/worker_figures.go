package console

import (
	"context"
	"time"

	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/internal/operate/flow"
)

// figures are what a worker does, or why that is not known.
type figures struct {
	flow.Figures
	Err error
}

// watchedWorker is a worker of which somebody sees the page.
type watchedWorker struct {
	fleet         *control.Client
	owner, worker string
}

// looks are what the processes said of a worker in the last minute, oldest first.
type looks []flow.Snapshot

// figures asks all processes. Rates are those since the oldest of the looks before, to which the new one is added.
// before may be nil: then there are no rates.
func (w watchedWorker) figures(ctx context.Context, before *looks) (f figures) {
	now, err := flow.TakeOf(ctx, w.fleet, w.owner, w.worker)
	var oldest flow.Snapshot
	if before != nil && len(*before) > 0 {
		oldest = (*before)[0]
	}
	f = figures{flow.FiguresOf(w.owner+"/"+w.worker, oldest, now), err}
	if before != nil && err == nil {
		const most = int(time.Minute / sampleEvery)
		kept := *before
		*before = append(kept[max(0, len(kept)-most+1):len(kept):len(kept)], now)
	}
	return f
}

// follow sends the figures until ctx is done.
func (w watchedWorker) follow(ctx context.Context, send func(figures) error) error {
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for before := (looks{}); ; {
		if err := send(w.figures(ctx, &before)); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}
