package cancels

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/pinwheel-run/pinwheel/consumer/cancel"
	"github.com/pinwheel-run/pinwheel/internal/lib/stored"
)

const (
	// passes is how often a purge looks through all places at most: an event may move behind its back.
	passes = 5
	// rest is the part of a batch's time for which a purge rests after it, so that others have the streams too.
	rest = 4
	// batchBytes bounds the headers of the events of a batch.
	batchBytes = 8 << 20
	// mostLeft is of how many events that are left a purge knows that it has counted them.
	mostLeft = 1 << 16
)

// Place is where events wait.
type Place struct{ Stream, Filter string }

// Purge says what is to be purged.
type Purge struct {
	Places []Place
	// Chooses reports whether an event of a place is meant. It must say no to events that were stored after the purge
	// began, or the purge does not end.
	Chooses func(place int, m *stored.Message) bool
	DryRun  bool // only count
	// Wait is called before each batch, with what was done so far. An error ends the purge.
	Wait func(ctx context.Context, c Counts) error
}

// Counts are what a purge has done.
type Counts struct {
	Found  int // events that were meant and waited, or seemed to
	Purged int
	Left   int // of Found: their runs began, or they ended or moved meanwhile
}

// purging is the state of a purge.
type purging struct {
	*Fleet
	Purge
	Counts
	running map[cancel.ID]bool // that were counted
	moved   bool
	batch   []Event
	bytes   int
}

// Purge takes events that wait out of the queue, batch by batch. An event whose run has begun is left alone.
func (f *Fleet) Purge(ctx context.Context, p Purge) (Counts, error) {
	x := &purging{Fleet: f, Purge: p, running: map[cancel.ID]bool{}}
	for range passes {
		x.moved = false
		if err := x.pass(ctx); err != nil || !x.moved {
			return x.Counts, err
		}
	}
	return x.Counts, nil
}

// pass looks through all places once.
func (x *purging) pass(ctx context.Context) error {
	for i, place := range x.Places {
		for m, err := range stored.All(ctx, x.NC, place.Stream, place.Filter, 1) {
			if err != nil {
				return err
			}
			if !x.Chooses(i, m) {
				continue
			}
			x.bytes += sizeOf(m)
			x.batch = append(x.batch, NewEvent(place.Stream, m))
			if len(x.batch) == Batch || x.bytes >= batchBytes {
				if err := x.flush(ctx); err != nil {
					return err
				}
			}
		}
		if err := x.flush(ctx); err != nil {
			return err
		}
	}
	return nil
}

// flush purges the batch.
func (x *purging) flush(ctx context.Context) error {
	list := x.batch
	x.batch, x.bytes = nil, 0
	if len(list) == 0 {
		return nil
	}
	if err := x.Wait(ctx, x.Counts); err != nil {
		return err
	}
	if x.DryRun {
		x.Found += len(list)
		return nil
	}
	began := time.Now()
	outcomes, silent, err := x.take(ctx, list, cancel.Waiting)
	if len(silent) > 0 && err == nil {
		err = fmt.Errorf("processes that may have events do not answer: %s; the same purge goes on when they do or are gone",
			strings.Join(silent, ", "))
	}
	for i, o := range outcomes {
		switch {
		case o == Cancelled:
			x.Found, x.Purged = x.Found+1, x.Purged+1
		case o == Moved:
			x.moved = true
		case !x.running[list[i].id()]:
			if len(x.running) < mostLeft {
				x.running[list[i].id()] = true
			}
			x.Found, x.Left = x.Found+1, x.Left+1
		}
	}
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Since(began) / rest):
		return nil
	}
}

// sizeOf is about how many bytes a message keeps without its body.
func sizeOf(m *stored.Message) (bytes int) {
	for name, values := range m.Header {
		for _, v := range values {
			bytes += len(name) + len(v)
		}
	}
	return bytes
}
