package guarantees_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
)

// order is an event that the test published, and what was observed of it.
type order struct {
	id, owner, worker, what string
	kind                    events.Kind
	call                    bool // a plain request: it is not acknowledged, so the test only checks what it must not do

	delay time.Duration // Deliver-After header
	twice bool          // published again with the same ID after it was answered: its worker is idempotent

	sent      time.Time // first attempt to publish it
	published time.Time // time of the acknowledgement
	first     time.Time // first run
	seen      time.Time // last observation
	// published again because the server was unreachable before it acknowledged: it may have ended more than once
	unsure bool
	// it was in a deleted stream, or was stored at that time: the only remaining promise is that it does not end twice
	lost    bool
	replays int    // replays of its dead letter
	letter  uint64 // the last letter that was replayed
	body    string

	runs     []int // attempt of each run; 0 for a fetch event
	done     int   // runs that reached their end
	replies  []*events.Reply
	refusals int // calls that were answered by a process that did not store them
}

// maxAttempts is the value for every worker of the test.
const maxAttempts = 3

// ends returns the allowed ends of an event: "ack", or the reason of a dead letter.
func (o *order) ends() []string {
	failed := func(reason events.Reason) []string {
		if o.kind == events.Fetch {
			return []string{"ack"} // its reply has the reason
		}
		return []string{string(reason)}
	}
	if o.owner == rough && o.what == "ok" { // a paused process or a busy machine may exceed these short limits
		return append(failed(events.Reason(o.worker)), string(events.ReasonException), "ack") // its fetch may fail first
	}
	switch o.what {
	case "throw", "noretry", "poison":
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
		// on a busy machine its fetch may fail first
		return append(failed(events.ReasonTimeout), failed(events.ReasonException)...)
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

// succeeds reports whether its last run reaches its end.
func (o *order) succeeds() bool {
	switch o.what {
	case "fine", "blind", "again", "twice":
		return true
	case "ok", "slow", "long", "late":
		return o.owner != rough
	case "flaky", "retry":
		return o.kind != events.Fetch
	}
	return false
}

// quietRuns is how often it runs when nothing is broken meanwhile; -1: unknown.
func (o *order) quietRuns() (least, most int) {
	switch {
	case o.owner == rough || o.what == "hurry":
		return -1, -1 // the kill of another handler may end the isolate
	case o.what == "missing" || o.what == "malformed" || o.what == "expired":
		return 0, 0
	case o.what == "throw" && o.kind != events.Fetch, o.what == "poison", o.what == "twice":
		return maxAttempts, maxAttempts
	case (o.what == "flaky" || o.what == "retry") && o.kind != events.Fetch, o.what == "again":
		return 2, 2
	case o.what == "blind": // its batch may fail; then it runs alone
		return 1, 2
	}
	return 1, 1
}

// model is everything that was published and observed.
type model struct {
	mu     sync.Mutex
	orders map[string]*order
	list   []*order
	wrong  []string // violations
	faults []fault
	// events may run again without a fault: there is a cluster, whose acks may be late on a busy machine; or see
	// openFleet
	loose bool
}

// fault is a time in which something was broken. It ends when the effects may no longer be felt.
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

// ran records the report of a handler.
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

// replied records a reply to the subject of o.
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

// settleTime is how long the effects of a fault may last after it.
const settleTime = 4*ackWait + 2*time.Second

// broken records that something is broken from now on, until the returned function is called.
func (m *model) broken(kind string) (mended func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults = append(m.faults, fault{kind: kind, from: time.Now(), until: time.Now().Add(time.Hour)})
	i := len(m.faults) - 1
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.faults[i].until = time.Now().Add(settleTime)
	}
}

// quiet reports whether nothing was broken during the life of o. A lost event was not observed to its end.
func (m *model) quiet(o *order) bool {
	return !m.loose && !o.lost && !slices.ContainsFunc(m.faults,
		func(f fault) bool { return f.from.Before(o.seen.Add(ackWait)) && f.until.After(o.published) })
}

// check compares the observations with the promises, after all events have ended.
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
	if o.call || o.published.IsZero() { // it was not acknowledged
		return
	}
	ends := o.ends()
	if len(letters) == 0 {
		if o.lost {
			return
		}
		if !slices.Contains(ends, "ack") {
			m.fail("%s: no dead letter", o)
		}
		if o.succeeds() && o.done == 0 {
			m.fail("%s: acked, but no run of it got to its end; it ran %d times", o, len(o.runs))
		}
		return
	}
	if len(letters) > 1 && !o.unsure {
		m.fail("%s: %d dead letters", o, len(letters))
	}
	for _, l := range letters {
		if !slices.Contains(ends, string(l.Failure.Reason)) { // who kills processes makes no letters
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

func (m *model) checkRuns(o *order) {
	if len(o.runs) > 0 && o.first.Before(o.sent.Add(o.delay)) {
		m.fail("%s: ran %s after it was published, and wanted %s", o, o.first.Sub(o.sent), o.delay)
	}
	for _, attempt := range o.runs {
		if attempt > maxAttempts*(1+o.replays)+len(m.faults) && o.owner != rough {
			m.fail("%s: attempt %d, and there were %d faults", o, attempt, len(m.faults))
		}
	}
	least, most := o.quietRuns()
	if most < 0 || o.call || o.published.IsZero() || o.unsure || o.replays > 0 || !m.quiet(o) {
		return
	}
	if len(o.runs) < least || len(o.runs) > most {
		m.fail("%s: ran %d times while nothing was broken, not %d to %d", o, len(o.runs), least, most)
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
		if o.twice && m.quiet(o) && (r.Attempt != 1 || string(r.Body) != string(o.replies[0].Body) ||
			r.Duration != o.replies[0].Duration) {
			m.fail("%s: of two events of this id one was answered %+v and one %+v", o, o.replies[0], r)
		}
		if r.Failure != nil {
			if o.kind != events.Fetch && !slices.Contains(o.ends(), string(r.Failure.Reason)) &&
				r.Failure.Reason != events.ReasonCrash {
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
		if o.worker == "batch" && string(r.Body) != `{"success":true}` {
			m.fail("%s: replied %.200q", o, r.Body)
		}
		if slices.Contains([]string{"ok", "slow", "long", "late"}, o.what) && !strings.Contains(string(r.Body),
			`"id":"`+o.id+`"`) {
			m.fail("%s: replied %.200q", o, r.Body)
		}
	}
}

// serverAway reports whether the requester was unreachable for some time when o might have been answered.
func (m *model) serverAway(o *order) bool {
	return slices.ContainsFunc(m.faults, func(f fault) bool {
		return strings.Contains(f.kind, "server") && f.until.After(o.published) && f.from.Before(o.seen.Add(settleTime))
	})
}
