package runs

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/lib/stored"
	"github.com/pinwheel-run/pinwheel/internal/operate/tail"
)

// Bounds of a Filter.
const (
	maxText = 256
	// MaxPage is how many records a page has at most.
	MaxPage = 500
)

// Filter chooses records. Empty fields choose all.
type Filter struct {
	Owner   string `json:"owner,omitempty"`
	Worker  string `json:"worker,omitempty"`
	Version string `json:"version,omitempty"` // whole, or its number
	Outcome string `json:"outcome,omitempty"` // one of tail.Outcomes
	Event   string `json:"event,omitempty"`   // its id, whole
	Text    string `json:"text,omitempty"`    // in the id, the message or the lines; the letters a to z in either case
}

// FieldError says what is wrong with a field of a Filter.
type FieldError struct{ Field, Text string }

func (e *FieldError) Error() string { return e.Field + " " + e.Text }

// Check returns a *FieldError for the first field that is wrong.
func (f Filter) Check() error {
	for _, name := range []struct{ field, value string }{{"owner", f.Owner}, {"version", f.Version}} {
		if name.value != "" && !events.ValidName(name.value) {
			return &FieldError{name.field, fmt.Sprintf("%.80q: it is 1 to %d of A-Z a-z 0-9 _ -", name.value, events.MaxName)}
		}
	}
	switch {
	case f.Worker != "" && !events.ValidName(f.Worker):
		return &FieldError{"worker", fmt.Sprintf("%.80q: it is 1 to %d of A-Z a-z 0-9 _ -", f.Worker, events.MaxName)}
	case f.Outcome != "" && !slices.Contains(tail.Outcomes(), f.Outcome):
		return &FieldError{"outcome", fmt.Sprintf("%.40q: it is one of %s", f.Outcome, strings.Join(tail.Outcomes(), ", "))}
	case len(f.Event) > maxEvent:
		return &FieldError{"event", fmt.Sprintf("has %d bytes: it has at most %d", len(f.Event), maxEvent)}
	case len(f.Text) > maxText:
		return &FieldError{"text", fmt.Sprintf("has %d bytes: it has at most %d", len(f.Text), maxText)}
	}
	return nil
}

// subject is the filter by which NATS chooses.
func (f Filter) subject(s events.Subjects) string {
	version, event := "", ""
	if f.Version != "" {
		version = number(f.Version)
	}
	if f.Event != "" {
		event = bucket(f.Event)
	}
	return s.Runs(f.Owner, f.Worker, version, f.Outcome, event)
}

// admits reports whether f chooses a record of its subject. text is f.Text in small letters.
func (f Filter) admits(r *Record, text string) bool {
	if f.Event != "" && r.Event != f.Event || strings.Contains(f.Version, "-") && r.Version != f.Version {
		return false
	}
	has := func(s string) bool { return strings.Contains(strings.ToLower(s), text) }
	return text == "" || has(r.Event) || has(r.Message) ||
		slices.ContainsFunc(r.Lines, func(l Line) bool { return has(l.Text) || has(l.Stack) })
}

// ErrNoHistory is the error when the fleet has no run history.
var ErrNoHistory = errors.New("the fleet has no run history: PINWHEEL_RUNS is off, or no process of this release has run")

// ErrNone is the error when there is no such record.
var ErrNone = stored.ErrNone

// Store reads the records of a fleet. Several goroutines may use it.
type Store struct {
	nc       *nats.Conn
	js       jetstream.JetStream
	subjects events.Subjects
}

// NewStore returns the Store of a fleet. It asks NATS for nothing.
func NewStore(js jetstream.JetStream, s events.Subjects) *Store {
	return &Store{nc: js.Conn(), js: js, subjects: s}
}

// Get returns a record.
func (s *Store) Get(ctx context.Context, seq uint64) (*Record, error) {
	m, err := stored.Get(ctx, s.nc, events.StreamRuns, stored.Request{Seq: seq})
	if err != nil {
		return nil, historyError(err)
	}
	return parse(m)
}

func historyError(err error) error {
	if errors.Is(err, jetstream.ErrStreamNotFound) || errors.Is(err, nats.ErrNoResponders) {
		return ErrNoHistory
	}
	return err
}

// Page is a part of the records that a Filter chooses, the newest first.
type Page struct {
	Records []*Record `json:"runs"`
	// Next is the number that the records of the next page are below; 0 = there is no next page.
	Next uint64 `json:"next,omitempty"`
	// More: the page ended because it had taken long. The next page continues there.
	More    bool `json:"more,omitempty"`
	Scanned int  `json:"scanned"` // records that were read for it
}

const (
	// NATS has no way to read backwards: windows of numbers are read, the last one first, each forwards. windowFirst is
	// how many numbers the first one has. A window with more than windowMost records that the subject chooses, or with
	// more than windowBytes of them that the filter chooses, is read again in parts.
	windowFirst, windowMost, windowBytes = 256, 8192, 8 << 20
	// scanLeast is how many numbers a window has at least that a consumer reads.
	scanLeast = 128
	// mostScanned and scanTime are how many records are read for a page, about, and how long that may take.
	mostScanned, scanTime = 20_000, 5 * time.Second
)

// Newest returns the newest records that f chooses, whose number is below before if that is not 0.
func (s *Store) Newest(ctx context.Context, f Filter, before uint64, limit int) (Page, error) {
	if err := f.Check(); err != nil {
		return Page{}, err
	}
	stream, err := s.js.Stream(ctx, events.StreamRuns)
	if err != nil {
		return Page{}, historyError(err)
	}
	state := stream.CachedInfo().State
	w := &window{store: s, filter: f, text: strings.ToLower(f.Text), first: state.FirstSeq, end: state.LastSeq + 1,
		size: windowFirst}
	if before > 0 {
		w.end = min(w.end, before)
	}
	limit = min(max(1, limit), MaxPage)
	look, stop := context.WithTimeout(ctx, scanTime)
	defer stop()
	page := Page{Records: []*Record{}}
	for w.first < w.end {
		found, err := w.next(look)
		switch {
		case err != nil && (look.Err() == nil || ctx.Err() != nil || page.Next == 0):
			return Page{}, err
		case err != nil:
			page.More = true
			return page, nil
		}
		page.Scanned += w.read
		page.Next = w.end
		for _, r := range found {
			if page.Records = append(page.Records, r); len(page.Records) == limit {
				page.Next = r.Seq
				return page, nil
			}
		}
		if page.Scanned >= mostScanned {
			page.More = true
			return page, nil
		}
	}
	page.Next = 0
	return page, nil
}

// window reads records backwards.
type window struct {
	store      *Store
	filter     Filter
	text       string
	first, end uint64 // numbers that are left: from first on, below end
	size       uint64 // numbers of the next window
	read       int    // records that were read for the last one
}

// next returns the records of the next window that the filter chooses, the newest first. A window that has little is
// followed by one of twice the size.
func (w *window) next(ctx context.Context) ([]*Record, error) {
	w.read = 0
	for {
		from := w.first
		if w.end-w.first > w.size {
			from = w.end - w.size
		}
		span := w.end - from
		found, n, last, err := w.scan(ctx, from)
		w.read += n
		if err != nil {
			return nil, historyError(err)
		}
		if last != 0 { // there was too much
			w.size = max(1, min(span/2, (last-from)/4*3))
			continue
		}
		slices.Reverse(found)
		w.end, w.size = from, span
		if n < windowMost/2 && span < math.MaxUint64/4 {
			w.size = 2 * span
		}
		return found, nil
	}
}

// scan reads the records from a number on, below w.end. last is not 0 when there are too many for a window: it is the
// number of the last one that was read.
func (w *window) scan(ctx context.Context, from uint64) (found []*Record, n int, last uint64, err error) {
	read, bytes := stored.All, 0
	if w.end-from >= scanLeast {
		read = stored.Scan
	}
	for m, err := range read(ctx, w.store.nc, events.StreamRuns, w.filter.subject(w.store.subjects), from) {
		switch {
		case err != nil:
			return nil, n, 0, err
		case m.Sequence >= w.end:
			return found, n, 0, nil
		}
		n++
		if r, err := parse(m); err == nil && w.filter.admits(r, w.text) {
			found, bytes = append(found, r), bytes+len(m.Data)
		}
		if (n > windowMost || bytes > windowBytes) && w.end-from > 1 {
			return nil, n, m.Sequence, nil
		}
		if m.Sequence == w.end-1 {
			break // the next one is beyond
		}
	}
	return found, n, 0, nil
}
