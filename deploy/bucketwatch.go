package deploy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
)

// bucketWatch keeps a follower at what a KV bucket holds. A watch that dies, that falls behind, or whose bucket has
// lost keys or was created again, is followed by another pass over all entries.
type bucketWatch struct {
	kv       jetstream.KeyValue
	what     string // what the bucket holds, in messages
	options  []jetstream.WatchOpt
	every    time.Duration // between two comparisons with the state of the bucket
	log      zerolog.Logger
	restarts func() // called before each further pass; nil = nothing to do
	follower follower

	// Of the pass in progress.
	created time.Time // when the bucket was created
	seen    uint64    // newest revision
	stuckAt uint64    // seen at the last comparison, if the bucket had more; notStuck if it had not
}

const notStuck = ^uint64(0)

// follower takes what a bucketWatch finds. Its methods are called by one goroutine. An error ends the pass.
type follower interface {
	// begin starts a pass: each entry of the bucket comes, or comes again. With recreated, revisions count from 1
	// again.
	begin(recreated bool)
	// take gets an entry. With initial, the entry was there when the pass began.
	take(ctx context.Context, e jetstream.KeyValueEntry, initial bool) error
	// settle is called once in a pass, when all entries have come that were there when it began.
	settle(ctx context.Context) error
	// tick is called at each comparison. The result is the number of keys that the bucket must have at least.
	tick(now time.Time) (keys int)
}

// run watches until ctx is done, and returns its error.
func (w *bucketWatch) run(ctx context.Context) error {
	wait := backoff.NewExponentialBackOff(backoff.WithInitialInterval(20*time.Millisecond),
		backoff.WithMaxInterval(5*time.Second), backoff.WithMaxElapsedTime(0))
	for {
		err := w.pass(ctx, wait.Reset)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if w.restarts != nil {
			w.restarts()
		}
		w.log.Warn().Err(err).Msg("watch on " + w.what + " begins again")
		if !sleep(ctx, wait.NextBackOff()) {
			return ctx.Err()
		}
	}
}

// pass watches until something goes wrong. It calls settled when the follower has all that the bucket held.
func (w *bucketWatch) pass(ctx context.Context, settled func()) error {
	state, err := stateOf(ctx, w.kv, w.what)
	if err != nil {
		return err
	}
	watch, err := w.kv.WatchAll(ctx, w.options...)
	if err != nil {
		return fmt.Errorf("watch %s: %w", w.what, err)
	}
	defer resources.StopWatch(watch)
	w.follower.begin(!w.created.IsZero() && w.again(state))
	w.created, w.seen, w.stuckAt = state.created, 0, notStuck
	initial := true
	check := time.NewTicker(w.every)
	defer check.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-check.C:
			err = w.check(ctx)
		case e, ok := <-watch.Updates():
			switch {
			case !ok:
				err = fmt.Errorf("the watch on %s was closed", w.what)
			case e != nil:
				w.seen = e.Revision()
				err = w.follower.take(ctx, e, initial)
			default:
				initial = false
				// Entries behind the newest that came may have been deleted.
				w.seen = max(w.seen, state.last)
				if err = w.follower.settle(ctx); err == nil {
					settled()
				}
			}
		}
		if err != nil {
			return err
		}
	}
}

// check compares what was seen with what the bucket has. To be behind is normal while messages are on their way. A
// watch that has not moved since the last check delivers nothing any more.
func (w *bucketWatch) check(ctx context.Context) error {
	keys := w.follower.tick(time.Now())
	state, err := stateOf(ctx, w.kv, w.what)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return nil // NATS is not reachable: the watch goes on when it is back
	case w.again(state):
		return fmt.Errorf("the bucket of %s was created again: its last revision is %d, and %d was seen", w.what, state.last, w.seen)
	case int64(state.keys) < int64(keys):
		return fmt.Errorf("the bucket of %s has %d keys: it had %d", w.what, state.keys, keys)
	case state.last > w.seen && w.stuckAt == w.seen:
		return fmt.Errorf("the watch on %s stands at revision %d of %d", w.what, w.seen, state.last)
	}
	w.stuckAt = notStuck
	if state.last > w.seen {
		w.stuckAt = w.seen
	}
	return nil
}

// again reports whether the bucket is not the one of this pass any more, or an older copy of it.
func (w *bucketWatch) again(s bucketState) bool {
	return !s.created.Equal(w.created) || s.last < w.seen
}

// bucketState is what a server says of a bucket.
type bucketState struct {
	created time.Time
	last    uint64 // newest revision
	keys    uint64 // those with a marker of a removal included
}

func stateOf(ctx context.Context, kv jetstream.KeyValue, what string) (bucketState, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	status, err := kv.Status(ctx)
	if err != nil {
		return bucketState{}, fmt.Errorf("state of the bucket of %s: %w", what, err)
	}
	bucket, ok := status.(*jetstream.KeyValueBucketStatus)
	if !ok {
		return bucketState{}, errors.New("state of the bucket of " + what + " is unknown")
	}
	info := bucket.StreamInfo()
	return bucketState{info.Created, info.State.LastSeq, info.State.NumSubjects}, nil
}
