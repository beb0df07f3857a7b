package deadletter

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
	"github.com/pinwheel-run/pinwheel/internal/lib/stored"
)

// Store lists, shows, edits, replays, removes, exports and imports dead letters. It needs no running Consumer, and may
// be used by many goroutines at once.
type Store struct {
	js       jetstream.JetStream
	subjects events.Subjects

	mu      sync.Mutex
	stream  jetstream.Stream
	unnoted bool // replays could not be noted
}

// NewStore makes a Store. Nothing is asked of NATS yet.
func NewStore(js jetstream.JetStream, s events.Subjects) *Store {
	return &Store{js: js, subjects: s}
}

// Filter chooses dead letters. The zero Filter chooses all.
type Filter struct {
	Owner, Worker string         // "" = any
	Kind          string         // "fetch", "task", "scheduled", "unknown"; "" = any
	Reason        events.Reason  // "" = any
	Since, Until  time.Time      // only those that became dead letters at Since or later, and before Until; zero = no bound
	Match         *regexp.Regexp // only those whose message it matches; nil = any
	Text          string         // only those whose message, event ID or body contains it; a to z in either case; "" = any
	MinReplays    int            // only those that were replayed at least so often
	MaxReplays    int            // and at most so often; 0 = no bound, and Never stands for 0
	After         uint64         // only those with a greater number
	Limit         int            // at most so many; 0 = no limit

	// Wait is called before each letter is looked at, on the goroutine that reads them. Its error ends the list. nil =
	// nothing waits.
	Wait func(context.Context) error
}

// Never is Filter.MaxReplays for letters that were never replayed.
const Never = -1

// choice is a Filter that is ready to check many letters.
type choice struct {
	Filter
	text *finder // nil: any
}

func (f Filter) choice() choice {
	c := choice{Filter: f}
	if f.Text != "" {
		c.text = newFinder(f.Text)
	}
	return c
}

// admits reports whether c chooses d. It checks what the subject of a letter does not show, the cheapest first.
func (c *choice) admits(d *events.DeadLetter) bool {
	switch {
	case d.At.Before(c.Since), !c.Until.IsZero() && !d.At.Before(c.Until):
		return false
	case d.Replays < c.MinReplays, c.MaxReplays == Never && d.Replays > 0, c.MaxReplays > 0 && d.Replays > c.MaxReplays:
		return false
	case c.Match != nil && !c.Match.MatchString(d.Failure.Message):
		return false
	case c.text != nil && !within(c.text, d.Failure.Message) && !within(c.text, d.EventID) && !within(c.text, d.Body):
		return false
	}
	return true
}

// subject is the subject of the letters that f may choose.
func (f Filter) subject(s events.Subjects) string {
	return s.DeadFilter(f.Owner, f.Worker, f.Kind, f.Reason)
}

// Errors that callers distinguish.
var (
	ErrNoDeadLetter   = errors.New("no such dead letter")
	ErrTooManyReplays = errors.New("replayed too often")
	ErrUndecodable    = errors.New("not a dead letter")
)

func (d *Store) open(ctx context.Context) (jetstream.Stream, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stream == nil {
		s, err := d.js.Stream(ctx, events.StreamDead)
		if err != nil {
			return nil, fmt.Errorf("dead letters: stream %s: %w", events.StreamDead, err)
		}
		d.stream = s
	}
	return d.stream, nil
}

// List iterates over the dead letters that f chooses, the oldest first, one at a time: they are never all in memory.
// Letters that arrive meanwhile may be included or not. For a letter that cannot be decoded it yields ErrUndecodable
// and a letter with only Seq, and continues. After an error of NATS, with a nil letter, the list ends.
func (d *Store) List(ctx context.Context, f Filter) iter.Seq2[*events.DeadLetter, error] {
	return func(yield func(*events.DeadLetter, error) bool) {
		if _, err := d.open(ctx); err != nil {
			yield(nil, err)
			return
		}
		n, chosen := 0, f.choice()
		for m, err := range stored.All(ctx, d.js.Conn(), events.StreamDead, f.subject(d.subjects), f.After+1) {
			if err != nil {
				yield(nil, fmt.Errorf("dead letters: %w", err))
				return
			}
			if f.Wait != nil {
				if err := f.Wait(ctx); err != nil {
					yield(nil, err)
					return
				}
			}
			letter, err := decodeDead(m)
			if err == nil && !chosen.admits(letter) {
				continue
			}
			if n++; !yield(letter, err) || n == f.Limit {
				return
			}
		}
	}
}

// decodeDead decodes a stored message as a letter. If it is none, the letter has only the number.
func decodeDead(m *stored.Message) (*events.DeadLetter, error) {
	letter, err := events.DecodeDeadLetter(m.Sequence, events.Header(m.Header), m.Data)
	if err != nil {
		return &events.DeadLetter{Seq: m.Sequence}, fmt.Errorf("message %d: %w: %w", m.Sequence, ErrUndecodable, err)
	}
	return letter, nil
}

// Get reads one dead letter. The error is ErrNoDeadLetter when there is none with this number.
func (d *Store) Get(ctx context.Context, seq uint64) (*events.DeadLetter, error) {
	m, err := d.get(ctx, seq)
	if err != nil {
		return nil, err
	}
	return decodeDead(m)
}

func (d *Store) get(ctx context.Context, seq uint64) (*stored.Message, error) {
	m, err := stored.Get(ctx, d.js.Conn(), events.StreamDead, stored.Request{Seq: seq})
	if errors.Is(err, stored.ErrNone) {
		return nil, fmt.Errorf("%w: %d", ErrNoDeadLetter, seq)
	}
	if err != nil {
		return nil, fmt.Errorf("dead letter %d: %w", seq, err)
	}
	return m, nil
}

// Remove deletes one dead letter. The error is ErrNoDeadLetter when there is none with this number.
func (d *Store) Remove(ctx context.Context, seq uint64) error {
	stream, err := d.open(ctx)
	if err != nil {
		return err
	}
	err = stream.DeleteMsg(ctx, seq)
	if err == nil {
		return nil
	}
	// The server's error for a missing message is not specific, so look.
	if _, gone := d.get(ctx, seq); errors.Is(gone, ErrNoDeadLetter) {
		return gone
	}
	return fmt.Errorf("dead letter %d: %w", seq, err)
}

// Count is how many letters f chooses. If f uses more than owner, worker, kind, reason, After and Limit, it is the
// maximum.
func (d *Store) Count(ctx context.Context, f Filter) (int, error) {
	// A consumer knows how many messages it has pending. The stream may have very many subjects.
	cfg := jetstream.ConsumerConfig{
		FilterSubject: f.subject(d.subjects), AckPolicy: jetstream.AckNonePolicy,
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: f.After + 1, MemoryStorage: true,
		InactiveThreshold: 5 * time.Second,
	}
	c, err := d.js.CreateConsumer(ctx, events.StreamDead, cfg)
	if err != nil {
		return 0, fmt.Errorf("dead letters: %w", err)
	}
	info := c.CachedInfo()
	_ = d.js.DeleteConsumer(ctx, events.StreamDead, info.Name) // the server would remove it anyway
	n := int(min(info.NumPending, 1<<31))
	if f.Limit > 0 {
		n = min(n, f.Limit)
	}
	return n, nil
}
