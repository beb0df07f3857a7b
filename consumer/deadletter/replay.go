package deadletter

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
	// MaxReplays is the number of earlier replays at which an event is refused. 0 means DefaultMaxReplays.
	MaxReplays int
	// Force replays in spite of earlier replays.
	Force bool
	// Rate is the maximum number of replays per second, for ReplayAll. 0 means no limit.
	Rate float64
	// To is the worker and version that run the event. By default they are those that the event asked for.
	To events.Target
	// Edit is applied to each letter before it is replayed. Letters that are not replayed stay unchanged.
	Edit events.Edit
	// Stored, when it is not nil, is called when the event is stored again and the letter still exists. Tests end the
	// process there.
	Stored func()
	// Runs, when it is not nil, returns why no process would run a replay for that worker and version (empty: the active
	// one), or nil. It is called before anything is published.
	Runs func(ctx context.Context, owner, worker, version string) error
	// Unnoted, when it is not nil, is called once with the reason why the ends of replays will not be known. The replays
	// are published anyway.
	Unnoted func(error)
	// DryRun only checks whether the letter could be replayed.
	DryRun bool
}

// DefaultMaxReplays is more than people do by hand, and far fewer than a loop does.
const DefaultMaxReplays = 10

// letterPatience is how long an operation on one letter may take once it has begun, even if the caller's context ends:
// half a replay is no replay.
const letterPatience = 30 * time.Second

// rememberPatience is how long it may take to note that a letter was replayed.
const rememberPatience = 5 * time.Second

// Replay publishes the event of a dead letter again and then removes the letter. A crash in between leaves the letter.
// If the letter is replayed again, the event does not run a second time (docs/reference/wire.md, "Dead letters").
func (d *Store) Replay(ctx context.Context, letter *events.DeadLetter, o ReplayOptions) error {
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
	ack, err := d.js.PublishMsg(ctx, m, jetstream.WithExpectStream(events.StreamEvents))
	if err != nil {
		return fmt.Errorf("replay of dead letter %d: %w", letter.Seq, err)
	}
	if ack.Duplicate { // the mark is new: the message that has its id is another one
		return fmt.Errorf("replay of dead letter %d: the stream says that it has a message with the id of this replay: the event was not stored, and the letter stays", letter.Seq)
	}
	if o.Stored != nil {
		o.Stored()
	}
	d.remember(ctx, letter, worker, version, ack.Sequence, o)
	if err := d.Remove(ctx, letter.Seq); err != nil && !errors.Is(err, ErrNoDeadLetter) {
		return fmt.Errorf("dead letter %d was replayed, but it is still there: %w", letter.Seq, err)
	}
	return nil
}

// remember notes that a letter was replayed. After one failure it does not try again for later letters: a caller
// without the permission would wait at each letter.
func (d *Store) remember(ctx context.Context, letter *events.DeadLetter, worker, version string, seq uint64,
	o ReplayOptions) {
	d.mu.Lock()
	unnoted := d.unnoted
	d.mu.Unlock()
	if unnoted {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, rememberPatience)
	defer cancel()
	err := d.note(ctx, letter, worker, version, seq)
	if err == nil {
		return
	}
	d.mu.Lock()
	d.unnoted = true
	d.mu.Unlock()
	if o.Unnoted != nil {
		o.Unnoted(fmt.Errorf("how replays end will not be known: %w", err))
	}
}

func (d *Store) replayMessage(letter *events.DeadLetter, o ReplayOptions) (*nats.Msg, error) {
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
	// The id must not be guessable: another publisher could use it first, and JetStream would drop the replay.
	h.Set(events.HeaderMsgID, letter.Owner+":replay:"+mark)
	return &nats.Msg{Subject: subject, Header: nats.Header(h), Data: letter.Body}, nil
}

// Selection chooses letters by number, or, without IDs, by filter.
type Selection struct {
	IDs    []uint64
	Owner  string // with IDs: letters of others are not found; "" = any
	Filter Filter // with IDs: only its Wait counts
}

// Counts is the progress of an operation on many letters.
type Counts struct {
	Total  int `json:"total"`  // maximum number of letters to look at
	Done   int `json:"done"`   // letters for which it succeeded
	Failed int `json:"failed"` // letters for which it failed
}

// count adds the result for letter l, and reports it to each, which may be nil.
func (t *Counts) count(l *events.DeadLetter, err error, each func(Progress)) {
	if err == nil {
		t.Done++
	} else {
		t.Failed++
	}
	if each != nil {
		each(Progress{l, err, *t})
	}
}

// Progress is the result for one letter. For a letter that could not be read, only Seq is known.
type Progress struct {
	Letter *events.DeadLetter
	Err    error
	Counts Counts // including this letter
}

// ReplayAll replays the letters of s. For a filter it replays those that existed when it began, so that events that
// fail again are not replayed forever. each (may be nil) is called for every letter. ReplayAll continues after an error
// of one letter. It returns ctx's error when it was interrupted between two letters, or the error of the list.
func (d *Store) ReplayAll(ctx context.Context, s Selection, o ReplayOptions, each func(Progress)) (Counts, error) {
	r := rate.Limit(o.Rate)
	if o.Rate <= 0 || o.DryRun {
		r = rate.Inf
	}
	d.mu.Lock()
	d.unnoted = false
	d.mu.Unlock()
	owners := map[string]int{}
	t, err := d.each(ctx, s, rate.NewLimiter(r, 1), each, func(ctx context.Context, l *events.DeadLetter,
		err error) error {
		if err != nil {
			return err
		}
		if owners[l.Owner]++; owners[l.Owner]%maxReplayRecords == 0 {
			_ = d.forgetReplays(ctx, map[string]int{l.Owner: 0}) // those that stay now are removed later
		}
		return d.Replay(ctx, l, o)
	})
	if !o.DryRun {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), letterPatience)
		defer cancel()
		_ = d.forgetReplays(ctx, owners) // they expire in any case
	}
	return t, err
}

// Purge removes the letters of s, in the same way as ReplayAll. A letter that cannot be read is removed by its number
// only. With dryRun it only reports which they are.
func (d *Store) Purge(ctx context.Context, s Selection, dryRun bool, each func(Progress)) (Counts, error) {
	return d.each(ctx, s, rate.NewLimiter(rate.Inf, 1), each, func(ctx context.Context, l *events.DeadLetter,
		err error) error {
		switch {
		case err != nil && (s.IDs == nil || !errors.Is(err, ErrUndecodable)):
			return err
		case dryRun:
			return nil
		}
		return d.Remove(ctx, l.Seq)
	})
}

// each calls do for every letter of s, at the given pace.
func (d *Store) each(ctx context.Context, s Selection, pace *rate.Limiter, each func(Progress),
	do func(context.Context, *events.DeadLetter, error) error,
) (t Counts, err error) {
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
		t.count(l, err, each)
	}
	return t, ctx.Err()
}

// interrupted returns ctx's error when a limiter found in advance that the time is too short.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// selected returns the letters of s, and sets t.Total. For a filter it returns the letters that exist now.
func (d *Store) selected(ctx context.Context, s Selection, t *Counts) (iter.Seq2[*events.DeadLetter, error], error) {
	if s.IDs != nil {
		t.Total = len(s.IDs)
		return d.getAll(ctx, s), nil
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

// getAll reads the letters of s.IDs. For a letter that cannot be read it yields the number and the error. If s.Owner is
// not empty, letters of others, and messages that are no letters, are not found.
func (d *Store) getAll(ctx context.Context, s Selection) iter.Seq2[*events.DeadLetter, error] {
	return func(yield func(*events.DeadLetter, error) bool) {
		for _, id := range s.IDs {
			if s.Filter.Wait != nil && s.Filter.Wait(ctx) != nil {
				return
			}
			l, err := d.Get(ctx, id)
			if s.Owner != "" && (errors.Is(err, ErrUndecodable) || err == nil && l.Owner != s.Owner) {
				l, err = nil, fmt.Errorf("%w: %d", ErrNoDeadLetter, id)
			}
			if l == nil {
				l = &events.DeadLetter{Seq: id}
			}
			if !yield(l, err) {
				return
			}
		}
	}
}
