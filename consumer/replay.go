package consumer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/time/rate"

	"github.com/pinwheel-run/pinwheel/events"
)

// DeadLetters lists, shows, removes and replays dead letters. It needs no running Consumer, and may
// be used by many goroutines at once.
type DeadLetters struct {
	js       jetstream.JetStream
	subjects events.Subjects

	mu     sync.Mutex
	stream jetstream.Stream
}

// NewDeadLetters makes a DeadLetters. Nothing is asked of NATS yet.
func NewDeadLetters(js jetstream.JetStream, s events.Subjects) *DeadLetters {
	return &DeadLetters{js: js, subjects: s}
}

// Filter chooses dead letters. The zero Filter chooses all.
type Filter struct {
	Owner, Worker string        // "" = any
	Kind          string        // "fetch", "task", "scheduled", "unknown"; "" = any
	Reason        events.Reason // "" = any
	Since         time.Time     // only those that became dead letters at this time or later
	Limit         int           // at most so many; 0 = no limit
}

// Errors that callers tell apart.
var (
	ErrNoDeadLetter   = errors.New("no such dead letter")
	ErrTooManyReplays = errors.New("replayed too often")
	ErrUndecodable    = errors.New("not a dead letter")
)

func (d *DeadLetters) open(ctx context.Context) (jetstream.Stream, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stream == nil {
		s, err := d.js.Stream(ctx, StreamDead)
		if err != nil {
			return nil, fmt.Errorf("dead letters: stream %s: %w", StreamDead, err)
		}
		d.stream = s
	}
	return d.stream, nil
}

// List goes through the dead letters that f chooses, the oldest first, one at a time: they are
// never all in memory, and those that arrive meanwhile may be seen or not. An error of one letter
// (ErrUndecodable) leaves the rest to be seen; an error of NATS ends the list.
func (d *DeadLetters) List(ctx context.Context, f Filter) iter.Seq2[*events.DeadLetter, error] {
	return func(yield func(*events.DeadLetter, error) bool) {
		stream, err := d.open(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		filter := jetstream.WithGetMsgSubject(d.subjects.DeadFilter(f.Owner, f.Worker, f.Kind, f.Reason))
		for seq, n := uint64(1), 0; f.Limit == 0 || n < f.Limit; seq++ {
			m, err := stream.GetMsg(ctx, seq, filter)
			if errors.Is(err, jetstream.ErrMsgNotFound) {
				return
			}
			if err != nil {
				yield(nil, fmt.Errorf("dead letters: %w", err))
				return
			}
			seq = m.Sequence
			letter, err := decodeDead(m)
			if err == nil && letter.At.Before(f.Since) {
				continue
			}
			n++
			if !yield(letter, err) {
				return
			}
		}
	}
}

func decodeDead(m *jetstream.RawStreamMsg) (*events.DeadLetter, error) {
	letter, err := events.DecodeDeadLetter(m.Sequence, events.Header(m.Header), m.Data)
	if err != nil {
		return nil, fmt.Errorf("message %d: %w: %w", m.Sequence, ErrUndecodable, err)
	}
	return letter, nil
}

// Get reads one dead letter. The error is ErrNoDeadLetter when there is none of this number.
func (d *DeadLetters) Get(ctx context.Context, seq uint64) (*events.DeadLetter, error) {
	stream, err := d.open(ctx)
	if err != nil {
		return nil, err
	}
	m, err := stream.GetMsg(ctx, seq)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, fmt.Errorf("%w: %d", ErrNoDeadLetter, seq)
	}
	if err != nil {
		return nil, fmt.Errorf("dead letter %d: %w", seq, err)
	}
	return decodeDead(m)
}

// Remove deletes one dead letter. The error is ErrNoDeadLetter when there is none of this number.
func (d *DeadLetters) Remove(ctx context.Context, seq uint64) error {
	stream, err := d.open(ctx)
	if err != nil {
		return err
	}
	err = stream.DeleteMsg(ctx, seq)
	if err == nil {
		return nil
	}
	// The server tells a missing message in general words: look.
	if _, gone := d.Get(ctx, seq); errors.Is(gone, ErrNoDeadLetter) {
		return gone
	}
	return fmt.Errorf("dead letter %d: %w", seq, err)
}

// ReplayOptions say how to replay.
type ReplayOptions struct {
	// MaxReplays refuses events that have been replayed so often before. 0 means DefaultMaxReplays.
	MaxReplays int
	// Force replays whatever was before.
	Force bool
	// Rate is the most replays in a second, for ReplayAll. 0 means no limit.
	Rate float64
}

// DefaultMaxReplays is far more than people do by hand and far less than a loop does.
const DefaultMaxReplays = 20

// Replay publishes the event of a dead letter again and then removes the letter. A second Replay of the
// same letter, after a crash in between, is recognised by its message id for two minutes.
func (d *DeadLetters) Replay(ctx context.Context, letter *events.DeadLetter, o ReplayOptions) error {
	limit := o.MaxReplays
	if limit <= 0 {
		limit = DefaultMaxReplays
	}
	if !o.Force && letter.Replays >= limit {
		return fmt.Errorf("%w: dead letter %d has been replayed %d times, and %d is the limit", ErrTooManyReplays, letter.Seq, letter.Replays, limit)
	}
	subject, h, err := letter.Replay(d.subjects)
	if err != nil {
		return err
	}
	h.Set(events.HeaderMsgID, fmt.Sprintf("replay:%d:%d", letter.Seq, letter.Replays+1))
	m := &nats.Msg{Subject: subject, Header: nats.Header(h), Data: letter.Body}
	if _, err := d.js.PublishMsg(ctx, m, jetstream.WithExpectStream(StreamEvents)); err != nil {
		return fmt.Errorf("replay of dead letter %d: %w", letter.Seq, err)
	}
	if err := d.Remove(ctx, letter.Seq); err != nil && !errors.Is(err, ErrNoDeadLetter) {
		return fmt.Errorf("dead letter %d was replayed, but it is still there: %w", letter.Seq, err)
	}
	return nil
}

// ReplayAll replays the dead letters that f chooses and that were there when it began. each (may be
// nil) is told of every letter; letter is nil when one could not be decoded. It goes on after an
// error of one letter; the error returned is ctx's or that of the list.
func (d *DeadLetters) ReplayAll(ctx context.Context, f Filter, o ReplayOptions, each func(letter *events.DeadLetter, err error)) (replayed int, err error) {
	stream, err := d.open(ctx)
	if err != nil {
		return 0, err
	}
	info, err := stream.Info(ctx)
	if err != nil {
		return 0, fmt.Errorf("dead letters: %w", err)
	}
	pace := rate.NewLimiter(rate.Inf, 1)
	if o.Rate > 0 {
		pace.SetLimit(rate.Limit(o.Rate))
	}
	for letter, err := range d.List(ctx, f) {
		if letter != nil && letter.Seq > info.State.LastSeq {
			break // failed again meanwhile: not for ever in one go
		}
		if err != nil && !errors.Is(err, ErrUndecodable) {
			return replayed, err
		}
		if err == nil {
			if err := pace.Wait(ctx); err != nil {
				return replayed, err
			}
			if err = d.Replay(ctx, letter, o); err == nil {
				replayed++
			}
			if each != nil {
				each(letter, err)
			}
			continue
		}
		if each != nil {
			each(nil, err)
		}
	}
	return replayed, ctx.Err()
}
