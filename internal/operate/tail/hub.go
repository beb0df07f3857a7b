package tail

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

const (
	// Renewal is how often a requester renews its request.
	Renewal = 5 * time.Second
	// lifetime is how long a tail lasts without a renewal: two renewals may get lost.
	lifetime = 16 * time.Second
	// maxTails is how many tails a process serves.
	maxTails = 128
	// maxOwnerTails is how many of them are of one owner.
	maxOwnerTails = 4
	// processLines limits the lines of all tails of a process, in a second.
	processLines = 2000
)

var (
	// ErrTooMany is the error of a tail that a process does not take.
	ErrTooMany = errors.New("too many tails")
	// ErrOther is the error of a request with the ID of a tail that chooses something else.
	ErrOther = errors.New("a tail with this id chooses something else")
)

// Request begins a tail, renews it, or ends it. All processes get it.
type Request struct {
	ID string `json:"id"` // last token of the feed's subject
	Filter
	End bool `json:"end,omitempty"`
}

// Feed is where the processes publish what one request asked for: <prefix>.feed.<owner>.<id> (core NATS, not stored).
// owner and id must be valid names.
func Feed(s events.Subjects, owner, id string) string {
	return string(s) + ".feed." + owner + "." + id
}

// minID is the shortest ID of a feed: one of that length is not found by guessing.
const minID, maxID = 16, 64

// Check returns a *FieldError for the first field that is wrong.
func (r Request) Check() error {
	if !events.ValidName(r.ID) || len(r.ID) < minID || len(r.ID) > maxID {
		return wrong("id", "%.80q: it is %d to %d of A-Z a-z 0-9 _ -, chosen at random for this tail", r.ID, minID, maxID)
	}
	return r.Filter.Check()
}

// Config configures a Hub. All fields are required.
type Config struct {
	Node      string
	Subjects  events.Subjects
	Observers *lifecycle.Observers // get the hub while it has tails
	// Publish sends a message without waiting. It must not keep data in memory while the connection is down.
	Publish func(subject string, data []byte) error
}

// Hub has the tails of a process. A nil Hub has none, and takes none.
type Hub struct {
	lifecycle.Unobserved

	cfg    Config
	lines  *rate.Limiter                      // of all tails
	active atomic.Pointer[map[string][]*tail] // by owner, never changed; nil: there is no tail

	mu      sync.Mutex
	tails   map[string]*tail // by subject of the feed
	closed  bool
	running sync.WaitGroup
}

// New returns a Hub without tails.
func New(cfg Config) *Hub {
	return &Hub{cfg: cfg, lines: rate.NewLimiter(processLines, processLines), tails: map[string]*tail{}}
}

// Log takes a log line. Any goroutine may call it. It does not wait. Without tails it costs one atomic load.
func (h *Hub) Log(l *events.LogLine) {
	if h == nil {
		return
	}
	if all := h.active.Load(); all != nil {
		if list := (*all)[l.Owner]; list != nil {
			h.offer(list, ofLine(l))
		}
	}
}

// Ended implements lifecycle.Observer: it takes the end of an attempt. The hub is an observer while it has tails.
func (h *Hub) Ended(r *lifecycle.Report) {
	all, e := h.active.Load(), r.Attempt.Event
	if all == nil || e == nil {
		return
	}
	if list := (*all)[e.Owner]; list != nil {
		for _, entry := range ofReport(r) {
			h.offer(list, entry)
		}
	}
}

func (h *Hub) offer(list []*tail, e *Entry) {
	e.Node = h.cfg.Node
	for _, t := range list {
		t.offer(e)
	}
}

// Renew begins, renews or ends a tail of an owner. The owner must be a valid name that the fleet determined.
func (h *Hub) Renew(owner string, r Request) error {
	if err := r.Check(); err != nil {
		return err
	}
	subject := Feed(h.cfg.Subjects, owner, r.ID)
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.tails[subject]
	switch {
	case t != nil && r.End:
		h.remove(t)
	case t != nil && !reflect.DeepEqual(t.match.Filter, r.Filter):
		return fmt.Errorf("id %s: %w: choose another id", r.ID, ErrOther)
	case t != nil:
		t.renewed.Store(time.Now().UnixNano())
	case !r.End:
		return h.begin(owner, subject, r.Filter)
	}
	return nil
}

// begin adds a tail. h.mu is locked.
func (h *Hub) begin(owner, subject string, f Filter) error {
	own := 0
	for _, t := range h.tails {
		if t.owner == owner {
			own++
		}
	}
	switch {
	case h.closed:
		return fmt.Errorf("%w: this process is ending", ErrTooMany)
	case own >= maxOwnerTails:
		return fmt.Errorf("%w: owner %s has %d in this process, and no more at once", ErrTooMany, owner, own)
	case len(h.tails) >= maxTails:
		return fmt.Errorf("%w: this process serves %d, and no more at once", ErrTooMany, len(h.tails))
	}
	m, err := f.parse()
	if err != nil {
		return err
	}
	t := newTail(h, owner, subject, m)
	h.tails[subject] = t
	h.publish()
	h.running.Go(t.run)
	return nil
}

// remove ends a tail. h.mu is locked.
func (h *Hub) remove(t *tail) {
	if h.tails[t.subject] == t {
		delete(h.tails, t.subject)
		close(t.ended)
		h.publish()
	}
}

// publish makes the tails known to the threads. h.mu is locked.
func (h *Hub) publish() {
	if len(h.tails) == 0 {
		h.cfg.Observers.Remove(h)
		h.active.Store(nil)
		return
	}
	all := map[string][]*tail{}
	for _, t := range h.tails {
		all[t.owner] = append(all[t.owner], t)
	}
	h.active.Store(&all)
	h.cfg.Observers.Add(h)
}

// Close ends all tails.
func (h *Hub) Close() {
	if h == nil {
		return
	}
	h.mu.Lock()
	h.closed = true
	for _, t := range slices.Collect(maps.Values(h.tails)) {
		h.remove(t)
	}
	h.mu.Unlock()
	h.running.Wait()
}
