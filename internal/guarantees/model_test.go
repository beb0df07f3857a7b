package guarantees_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
)

// order is one event as the test published it, and what was seen of it.
type order struct {
	id, owner, worker, what string
	kind                    events.Kind
	call                    bool // by a plain request: nobody acknowledges it, so only what it must not do is looked at

	delay time.Duration // asked for with Deliver-After
	twice bool          // published again with the same id, once it was answered: its worker is idempotent

	sent      time.Time // first try to publish it
	published time.Time // acknowledged
	first     time.Time // run
	seen      time.Time // last sign of it
	unsure    bool      // published more than once, because the server was gone before it acknowledged: it may have ended more than once
	lost      bool      // it was in a stream that was deleted, or was stored at that time: nothing is promised of it then, but that it does not end twice
	replays   int       // of its dead letter
	letter    uint64    // the last one that was replayed
	body      string

	runs     []int // attempt of each; 0 of a fetch event
	done     int   // runs that got to their end
	replies  []*events.Reply
	refusals int // calls that were answered by somebody who did not store them
}

// maxAttempts of every worker of the test.
const maxAttempts = 3

// ends are the ways in which an event may end: "ack", or the reason of a dead letter.
func (o *order) ends() []string {
	failed := func(reason events.Reason) []string {
		if o.kind == events.Fetch {
			return []string{"ack"} // its reply says why
		}
		return []string{string(reason)}
	}
	if o.owner == rough && o.what == "ok" { // a paused process or a busy machine may use up these short limits
		return append(failed(events.Reason(o.worker)), string(events.ReasonException), "ack") // its fetch may notice first
	}
	switch o.what {
	case "throw", "noretry":
		return failed(events.ReasonException)
	case "retry":
		if o.kind == events.Fetch {
			return []string{"ack"}
		}
	case "cpu":
		return failed(events.ReasonCPU)
	case "memory":
		return failed(events.ReasonMemory)
	case "timeout":
		return append(failed(events.ReasonTimeout), failed(events.ReasonException)...) // on a busy machine its fetch may notice first
	case "missing":
		return failed(events.ReasonNoWorker)
	case "malformed":
		return failed(events.ReasonMalformed)
	case "expired":
		return failed(events.ReasonExpired)
	case "hurry":
		return append(failed(events.ReasonExpired), "ack")
	}
	return []string{"ack"}
}

// succeeds reports whether its last run gets to its end.
func (o *order) succeeds() bool {
	switch o.what {
	case "ok", "slow", "long", "late":
		return o.owner != rough
	case "flaky", "retry":
		return o.kind != events.Fetch
	}
	return false
}

// quietRuns is how often it runs when nothing is broken meanwhile; -1: not known.
func (o *order) quietRuns() int {
	switch {
	case o.owner == rough || o.what == "hurry":
		return -1 // a neighbour's kill may take the isolate with it
	case o.what == "missing" || o.what == "malformed" || o.what == "expired":
		return 0
	case o.what == "throw" && o.kind != events.Fetch:
		return maxAttempts
	case (o.what == "flaky" || o.what == "retry") && o.kind != events.Fetch:
		return 2
	}
	return 1
}

// model is all that was published and seen.
type model struct {
	mu     sync.Mutex
	orders map[string]*order
	list   []*order
	wrong  []string // what must not be
	faults []fault
	kills  int
	loose  bool // events may run again without anything being broken: there is a cluster, whose acks may come too late on a busy machine; or see openHouse
}

// fault is a time in which something was broken, and until when its effects may be felt.
type fault struct {
	kind        string
	from, until time.Time
}

func newModel() *model { return &model{orders: map[string]*order{}} }

func (m *model) add(o *order) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.orders[o.id] = o
	m.list = append(m.list, o)
}

func (m *model) fail(format string, args ...any) {
	m.wrong = append(m.wrong, fmt.Sprintf(format, args...))
}

// ran notes what a handler told.
func (m *model) ran(id string, attempt int, done bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	o := m.orders[id]
	if o == nil {
		m.fail("a handler ran for %q, which was never published", id)
		return
	}
	o.seen = time.Now()
	if done {
		o.done++
		return
	}
	if len(o.runs) == 0 {
		o.first = o.seen
	}
	o.runs = append(o.runs, attempt)
}

// replied notes a reply that came to where o's goes.
func (m *model) replied(id string, r *events.Reply) {
	m.mu.Lock()
	defer m.mu.Unlock()
	o := m.orders[id]
	switch {
	case o == nil:
		m.fail("a reply came for %q, which was never published", id)
	case o.call && r.Attempt == 0:
		o.refusals++
	default:
		o.seen = time.Now()
		o.replies = append(o.replies, r)
		if r.EventID != id {
			m.fail("%s: a reply of event %q came", o, r.EventID)
		}
	}
}

func (o *order) String() string {
	return fmt.Sprintf("%s %s %s/%s %s", o.id, o.kind, o.owner, o.worker, o.what)
}

// settle is how long the effects of a fault may be felt after it.
const settleTime = 4*ackWait + 2*time.Second

// broken notes that something is broken from now on, until the returned function is called.
func (m *model) broken(kind string) (mended func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults = append(m.faults, fault{kind: kind, from: time.Now(), until: time.Now().Add(time.Hour)})
	i := len(m.faults) - 1
	if strings.HasPrefix(kind, "kill fleet") {
		m.kills++
	}
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.faults[i].until = time.Now().Add(settleTime)
	}
}

// quiet reports whether nothing was broken while o lived. One that was lost was not seen to its end.
func (m *model) quiet(o *order) bool {
	return !m.loose && !o.lost && !slices.ContainsFunc(m.faults, func(f fault) bool { return f.from.Before(o.seen.Add(ackWait)) && f.until.After(o.published) })
}

// check compares what was seen with what must be, once all has ended.
func (m *model) check(letters map[string][]*events.DeadLetter) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, o := range m.list {
		m.checkEnd(o, letters[o.id])
		m.checkRuns(o)
		m.checkReplies(o)
		delete(letters, o.id)
	}
	for id := range letters {
		m.fail("there is a dead letter of %q, which was never published", id)
	}
	return m.wrong
}

func (m *model) checkEnd(o *order, letters []*events.DeadLetter) {
	if o.call || o.published.IsZero() { // nobody acknowledged it
		return
	}
	ends := o.ends()
	crash := m.kills >= 3 // then events that ran in three processes that were killed are suspects
	if len(letters) == 0 {
		if o.lost {
			return
		}
		if !slices.Contains(ends, "ack") {
			m.fail("%s: no dead letter", o)
		}
		if o.succeeds() && o.done == 0 && !m.repliedCrash(o) {
			m.fail("%s: acked, but no run of it got to its end; it ran %d times", o, len(o.runs))
		}
		return
	}
	if len(letters) > 1 && !o.unsure {
		m.fail("%s: %d dead letters", o, len(letters))
	}
	for _, l := range letters {
		if !slices.Contains(ends, string(l.Failure.Reason)) && !(crash && l.Failure.Reason == events.ReasonCrash) {
			m.fail("%s: dead letter with reason %s: %s", o, l.Failure.Reason, l.Failure.Message)
		}
		if string(l.Body) != o.body || l.Owner != o.owner || l.Kind != o.kind.String() {
			m.fail("%s: its dead letter is another's: %s %s %.100q", o, l.Owner, l.Kind, l.Body)
		}
		if l.Replays != o.replays && !o.unsure {
			m.fail("%s: its dead letter counts %d replays, and there were %d", o, l.Replays, o.replays)
		}
	}
}

// repliedCrash reports whether a fetch event was answered that it was found running in crashed processes too often.
func (m *model) repliedCrash(o *order) bool {
	return slices.ContainsFunc(o.replies, func(r *events.Reply) bool { return r.Failure != nil && r.Failure.Reason == events.ReasonCrash })
}

func (m *model) checkRuns(o *order) {
	if len(o.runs) > 0 && o.first.Before(o.sent.Add(o.delay)) {
		m.fail("%s: ran %s after it was published, and wanted %s", o, o.first.Sub(o.sent), o.delay)
	}
	most := maxAttempts * (1 + o.replays)
	for _, attempt := range o.runs {
		if attempt > most+len(m.faults) && o.owner != rough {
			m.fail("%s: attempt %d, and there were %d faults", o, attempt, len(m.faults))
		}
	}
	want := o.quietRuns()
	if want < 0 || o.call || o.published.IsZero() || o.unsure || o.replays > 0 || !m.quiet(o) {
		return
	}
	if len(o.runs) != want {
		m.fail("%s: ran %d times while nothing was broken, not %d", o, len(o.runs), want)
	}
	if o.kind != events.Fetch {
		for i, attempt := range o.runs {
			if attempt != i+1 {
				m.fail("%s: attempts %v while nothing was broken", o, o.runs)
				break
			}
		}
	}
}

func (m *model) checkReplies(o *order) {
	if len(o.replies) == 0 && !o.published.IsZero() && !o.call && !o.lost && !m.serverAway(o) {
		m.fail("%s: no reply, and the server was there all the time", o)
	}
	for _, r := range o.replies {
		if o.twice && m.quiet(o) && (r.Attempt != 1 || string(r.Body) != string(o.replies[0].Body) || r.Duration != o.replies[0].Duration) {
			m.fail("%s: of two events of this id one was answered %+v and one %+v", o, o.replies[0], r)
		}
		if r.Failure != nil {
			if o.kind != events.Fetch && !slices.Contains(o.ends(), string(r.Failure.Reason)) && r.Failure.Reason != events.ReasonCrash {
				m.fail("%s: replied %s", o, r.Failure)
			}
			if o.kind == events.Fetch && o.succeeds() && r.Failure.Reason != events.ReasonCrash {
				m.fail("%s: replied %s", o, r.Failure)
			}
			continue
		}
		if !o.succeeds() && o.what != "hurry" && !(o.owner == rough && o.what == "ok") {
			m.fail("%s: replied %.200q", o, r.Body)
		}
		if slices.Contains([]string{"ok", "slow", "long", "late"}, o.what) && !strings.Contains(string(r.Body), `"id":"`+o.id+`"`) {
			m.fail("%s: replied %.200q", o, r.Body)
		}
	}
}

// serverAway reports whether the requester could not be reached for a while when o might have been answered.
func (m *model) serverAway(o *order) bool {
	return slices.ContainsFunc(m.faults, func(f fault) bool {
		return strings.Contains(f.kind, "server") && f.until.After(o.published) && f.from.Before(o.seen.Add(settleTime))
	})
}
