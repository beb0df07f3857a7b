package consumer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/stored"
)

// DeadLetters lists, shows, edits, replays, removes, exports and imports dead letters. It needs no running Consumer, and may
// be used by many goroutines at once.
type DeadLetters struct {
	js       jetstream.JetStream
	subjects events.Subjects

	mu     sync.Mutex
	stream jetstream.Stream
	untold bool // replays could not be noted
}

// NewDeadLetters makes a DeadLetters. Nothing is asked of NATS yet.
func NewDeadLetters(js jetstream.JetStream, s events.Subjects) *DeadLetters {
	return &DeadLetters{js: js, subjects: s}
}

// Filter chooses dead letters. The zero Filter chooses all.
type Filter struct {
	Owner, Worker string         // "" = any
	Kind          string         // "fetch", "task", "scheduled", "unknown"; "" = any
	Reason        events.Reason  // "" = any
	Since, Until  time.Time      // only those that became dead letters at Since or later, and before Until; zero = no bound
	Text          *regexp.Regexp // only those whose message it matches; nil = any
	MinReplays    int            // only those that were replayed at least so often
	MaxReplays    int            // and at most so often; 0 = no bound, and Never stands for 0
	After         uint64         // only those with a greater number
	Limit         int            // at most so many; 0 = no limit
}

// Never is Filter.MaxReplays for letters that were never replayed.
const Never = -1

// passes is the part of f that the subject does not tell.
func (f *Filter) passes(d *events.DeadLetter) bool {
	switch {
	case d.At.Before(f.Since), !f.Until.IsZero() && !d.At.Before(f.Until):
		return false
	case f.Text != nil && !f.Text.MatchString(d.Failure.Message):
		return false
	case d.Replays < f.MinReplays, f.MaxReplays == Never && d.Replays > 0, f.MaxReplays > 0 && d.Replays > f.MaxReplays:
		return false
	}
	return true
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
// never all in memory, and those that arrive meanwhile may be seen or not. An error of one letter, of which then only Seq is known,
// is ErrUndecodable and leaves the rest to be seen; an error of NATS, with a nil letter, ends the list.
func (d *DeadLetters) List(ctx context.Context, f Filter) iter.Seq2[*events.DeadLetter, error] {
	return func(yield func(*events.DeadLetter, error) bool) {
		if _, err := d.open(ctx); err != nil {
			yield(nil, err)
			return
		}
		n := 0
		for m, err := range stored.All(ctx, d.js.Conn(), StreamDead, d.subjects.DeadFilter(f.Owner, f.Worker, f.Kind, f.Reason), f.After+1) {
			if err != nil {
				yield(nil, fmt.Errorf("dead letters: %w", err))
				return
			}
			letter, err := decodeDead(m)
			if err == nil && !f.passes(letter) {
				continue
			}
			if n++; !yield(letter, err) || n == f.Limit {
				return
			}
		}
	}
}

// decodeDead makes a letter of a stored message. Of one that is none it has the number.
func decodeDead(m *stored.Message) (*events.DeadLetter, error) {
	letter, err := events.DecodeDeadLetter(m.Sequence, events.Header(m.Header), m.Data)
	if err != nil {
		return &events.DeadLetter{Seq: m.Sequence}, fmt.Errorf("message %d: %w: %w", m.Sequence, ErrUndecodable, err)
	}
	return letter, nil
}

// Get reads one dead letter. The error is ErrNoDeadLetter when there is none of this number.
func (d *DeadLetters) Get(ctx context.Context, seq uint64) (*events.DeadLetter, error) {
	m, err := d.get(ctx, seq)
	if err != nil {
		return nil, err
	}
	return decodeDead(m)
}

func (d *DeadLetters) get(ctx context.Context, seq uint64) (*stored.Message, error) {
	m, err := stored.Get(ctx, d.js.Conn(), StreamDead, stored.Request{Seq: seq})
	if errors.Is(err, stored.ErrNone) {
		return nil, fmt.Errorf("%w: %d", ErrNoDeadLetter, seq)
	}
	if err != nil {
		return nil, fmt.Errorf("dead letter %d: %w", seq, err)
	}
	return m, nil
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
	if _, gone := d.get(ctx, seq); errors.Is(gone, ErrNoDeadLetter) {
		return gone
	}
	return fmt.Errorf("dead letter %d: %w", seq, err)
}

// Count is how many letters f chooses; of an f that says more than owner, worker, kind, reason, After and Limit it is how many at most.
func (d *DeadLetters) Count(ctx context.Context, f Filter) (int, error) {
	// A consumer knows how many messages it has before it; the subjects of a stream could be very many.
	cfg := jetstream.ConsumerConfig{
		FilterSubject: d.subjects.DeadFilter(f.Owner, f.Worker, f.Kind, f.Reason), AckPolicy: jetstream.AckNonePolicy,
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: f.After + 1, MemoryStorage: true, InactiveThreshold: 5 * time.Second,
	}
	c, err := d.js.CreateConsumer(ctx, StreamDead, cfg)
	if err != nil {
		return 0, fmt.Errorf("dead letters: %w", err)
	}
	info := c.CachedInfo()
	_ = d.js.DeleteConsumer(ctx, StreamDead, info.Name) // it would go by itself
	n := int(min(info.NumPending, 1<<31))               //nolint:gosec // bounded in this line
	if f.Limit > 0 {
		n = min(n, f.Limit)
	}
	return n, nil
}
