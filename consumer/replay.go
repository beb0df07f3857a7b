package consumer

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/time/rate"

	"github.com/pinwheel-run/pinwheel/events"
)

// ReplayOptions say how to replay.
type ReplayOptions struct {
	// MaxReplays refuses events that have been replayed so often before. 0 means DefaultMaxReplays.
	MaxReplays int
	// Force replays whatever was before.
	Force bool
	// Rate is the most replays in a second, for ReplayAll. 0 means no limit.
	Rate float64
	// To is who runs the event: the worker it was for, in the version it asked for, unless this says otherwise.
	To events.Target
	// Edit is done to each letter before it is replayed. Letters that are not replayed stay as they were.
	Edit events.Edit
	// Step, when it is not nil, is called at StepReplayStored: for tests that end the process there.
	Step func(Step)
	// Runs, when it is not nil, says why no process would run a replay for that worker and version (empty: the active one), or nil. It is asked
	// before anything is published.
	Runs func(ctx context.Context, owner, worker, version string) error
	// Untold, when it is not nil, is told once why it will not be known how replays end. They are published all the same.
	Untold func(error)
	// DryRun only finds out whether the letter could be replayed.
	DryRun bool
}

// DefaultMaxReplays is more than people do by hand and far less than a loop does.
const DefaultMaxReplays = 10

// letterPatience is how long what was begun of one letter may take, whatever becomes of the caller's context: half a replay is no replay.
const letterPatience = 30 * time.Second

// rememberPatience is how long it may take to note that a letter was replayed.
const rememberPatience = 5 * time.Second

// Replay publishes the event of a dead letter again and then removes the letter. What crashes in between leaves the letter; replayed again it
// runs no second time (docs/wire.md, "Dead letters").
func (d *DeadLetters) Replay(ctx context.Context, letter *events.DeadLetter, o ReplayOptions) error {
	m, err := d.replayMessage(letter, o)
	if err != nil {
		return err
	}
	worker, version := cmp.Or(o.To.Worker, letter.Worker), m.Header.Get(events.HeaderWorkerVersion)
	if o.Runs != nil {
		if err := o.Runs(ctx, letter.Owner, worker, version); err != nil {
			return fmt.Errorf("dead letter %d is not replayed: %w", letter.Seq, err)
		}
	}
	if o.DryRun {
		return nil
	}
	ack, err := d.js.PublishMsg(ctx, m, jetstream.WithExpectStream(StreamEvents))
	if err != nil {
		return fmt.Errorf("replay of dead letter %d: %w", letter.Seq, err)
	}
	if o.Step != nil {
		o.Step(StepReplayStored)
	}
	d.remember(ctx, letter, worker, version, ack.Sequence, o)
	if err := d.Remove(ctx, letter.Seq); err != nil && !errors.Is(err, ErrNoDeadLetter) {
		return fmt.Errorf("dead letter %d was replayed, but it is still there: %w", letter.Seq, err)
	}
	return nil
}

// remember notes that a letter was replayed. When that fails once it is not tried again: who may not do it would wait at each letter.
func (d *DeadLetters) remember(ctx context.Context, letter *events.DeadLetter, worker, version string, seq uint64, o ReplayOptions) {
	d.mu.Lock()
	untold := d.untold
	d.mu.Unlock()
	if untold {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, rememberPatience)
	defer cancel()
	err := d.note(ctx, letter, worker, version, seq)
	if err == nil {
		return
	}
	d.mu.Lock()
	d.untold = true
	d.mu.Unlock()
	if o.Untold != nil {
		o.Untold(fmt.Errorf("how replays end will not be known: %w", err))
	}
}

func (d *DeadLetters) replayMessage(letter *events.DeadLetter, o ReplayOptions) (*nats.Msg, error) {
	limit := o.MaxReplays
	if limit <= 0 {
		limit = DefaultMaxReplays
	}
	if !o.Force && letter.Replays >= limit {
		return nil, fmt.Errorf("%w: dead letter %d has been replayed %d times, and %d is the limit; it takes force to replay it again",
			ErrTooManyReplays, letter.Seq, letter.Replays, limit)
	}
	if !o.Edit.Empty() {
		var err error
		if letter, err = letter.Edit(o.Edit, time.Now()); err != nil {
			return nil, err
		}
	}
	subject, h, err := letter.Replay(d.subjects, o.To)
	if err != nil {
		return nil, err
	}
	mark := letter.ReplayMark(rand.Text())
	h.Set(events.HeaderReplay, mark)
	// The id is not to be guessed: whoever published one like it before would make JetStream drop the replay.
	h.Set(events.HeaderMsgID, letter.Owner+":replay:"+mark)
	return &nats.Msg{Subject: subject, Header: nats.Header(h), Data: letter.Body}, nil
}

// Selection chooses letters by number, or, without IDs, by filter.
type Selection struct {
	IDs    []uint64
	Filter Filter
}

// Tally is how far something done to many letters has come.
type Tally struct {
	Total  int `json:"total"`  // letters there are to look at, at most
	Done   int `json:"done"`   // to so many it was done
	Failed int `json:"failed"` // to so many it could not be done
}

// Progress is what became of one letter. Of one that could not be read only Seq is known.
type Progress struct {
	Letter *events.DeadLetter
	Err    error
	Tally  Tally // with this one
}

// ReplayAll replays the letters of s; of a filter those that were there when it began, so that what fails again is not replayed for
// ever. each (may be nil) is told of every letter. It goes on after an error of one letter; the error returned is ctx's, when it was interrupted between
// two letters, or that of the list.
func (d *DeadLetters) ReplayAll(ctx context.Context, s Selection, o ReplayOptions, each func(Progress)) (Tally, error) {
	r := rate.Limit(o.Rate)
	if o.Rate <= 0 || o.DryRun {
		r = rate.Inf
	}
	d.mu.Lock()
	d.untold = false
	d.mu.Unlock()
	owners := map[string]int{}
	t, err := d.each(ctx, s, rate.NewLimiter(r, 1), each, func(ctx context.Context, l *events.DeadLetter, err error) error {
		if err != nil {
			return err
		}
		if owners[l.Owner]++; owners[l.Owner]%maxReplayRecords == 0 {
			_ = d.forgetReplays(ctx, map[string]int{l.Owner: 0}) // what stays too long now goes later
		}
		return d.Replay(ctx, l, o)
	})
	if !o.DryRun {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), letterPatience)
		defer cancel()
		_ = d.forgetReplays(ctx, owners) // they go with time in any case
	}
	return t, err
}

// Purge removes the letters of s, likewise. One that cannot be read is removed by its number only. dryRun only tells which they are.
func (d *DeadLetters) Purge(ctx context.Context, s Selection, dryRun bool, each func(Progress)) (Tally, error) {
	return d.each(ctx, s, rate.NewLimiter(rate.Inf, 1), each, func(ctx context.Context, l *events.DeadLetter, err error) error {
		switch {
		case err != nil && (s.IDs == nil || !errors.Is(err, ErrUndecodable)):
			return err
		case dryRun:
			return nil
		}
		return d.Remove(ctx, l.Seq)
	})
}

// each does do to every letter of s, at the given pace.
func (d *DeadLetters) each(ctx context.Context, s Selection, pace *rate.Limiter, each func(Progress),
	do func(context.Context, *events.DeadLetter, error) error,
) (t Tally, err error) {
	letters, err := d.selected(ctx, s, &t)
	if err != nil {
		return t, err
	}
	for l, err := range letters {
		if ctx.Err() == nil && l == nil {
			return t, err
		}
		if err := pace.Wait(ctx); err != nil {
			return t, interrupted(ctx, err)
		}
		begun, cancel := context.WithTimeout(context.WithoutCancel(ctx), letterPatience)
		err = do(begun, l, err)
		cancel()
		if err == nil {
			t.Done++
		} else {
			t.Failed++
		}
		if each != nil {
			each(Progress{l, err, t})
		}
	}
	return t, ctx.Err()
}

// interrupted is ctx's error where a limiter saw before that the time would not do.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// selected are the letters of s, of a filter those that are there now; and how many to expect.
func (d *DeadLetters) selected(ctx context.Context, s Selection, t *Tally) (iter.Seq2[*events.DeadLetter, error], error) {
	if s.IDs != nil {
		t.Total = len(s.IDs)
		return d.getAll(ctx, s.IDs), nil
	}
	stream, err := d.open(ctx)
	if err != nil {
		return nil, err
	}
	info, err := stream.Info(ctx)
	if err != nil {
		return nil, fmt.Errorf("dead letters: %w", err)
	}
	if t.Total, err = d.Count(ctx, s.Filter); err != nil {
		return nil, err
	}
	return func(yield func(*events.DeadLetter, error) bool) {
		for l, err := range d.List(ctx, s.Filter) {
			if l != nil && l.Seq > info.State.LastSeq || !yield(l, err) {
				return
			}
		}
	}, nil
}

// getAll reads the letters of these numbers. One that cannot be read comes as its number with the error.
func (d *DeadLetters) getAll(ctx context.Context, ids []uint64) iter.Seq2[*events.DeadLetter, error] {
	return func(yield func(*events.DeadLetter, error) bool) {
		for _, id := range ids {
			l, err := d.Get(ctx, id)
			if l == nil {
				l = &events.DeadLetter{Seq: id}
			}
			if !yield(l, err) {
				return
			}
		}
	}
}
