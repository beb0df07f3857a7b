package consumer

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pinwheel-run/pinwheel/consumer/attempts"
	"github.com/pinwheel-run/pinwheel/consumer/jsapi"
	"github.com/pinwheel-run/pinwheel/consumer/parking"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// entry is an event that this process is responsible for, from its delivery until its end is confirmed. The puller
// makes the entry. After that, fields without a comment belong to the settle goroutine.
type entry struct {
	event  lifecycle.Delivery
	from   *source
	stored time.Time     // by from's stream
	state  atomic.Uint32 // a state; written by begin before the entry is in the list, then by become, under inflight.mu
	charge
	index int // in the list; guarded by inflight.mu
	nth   int // in the list of its requester; guarded by inflight.mu

	ack     string    // ack subject of the newest delivery; guarded by inflight.mu
	acked   string    // ack subject to which the newest ack was sent; guarded by inflight.mu
	epoch   uint64    // of from, at the newest delivery; guarded by inflight.mu
	renewed time.Time // when the server last heard of it; guarded by inflight.mu

	// since when it is checked or settled, by inflight.clock; 0 = it runs or waits; guarded by inflight.mu
	settling time.Duration
	refused  time.Duration // when parking it was refused first, by inflight.clock; 0 = never; guarded by inflight.mu

	unspent string // the owner whose room it takes, if it was parked and dispatch, which reports room, has not seen it
	fate

	record     *attempts.Record // nil: the bucket has none
	reply      *events.Reply    // the published reply, unless its body is sent in chunks; kept until the ack is confirmed
	answer     *events.Reply    // the last reply, if the worker is idempotent: the result if the event succeeds
	absences   uint64           // leases.absences when it was delivered
	repliedOn  uint64           // reconnects of the connection when the reply was published
	tries      *jsapi.Retrier   // of the step that is being tried now
	park       parking.Try      // of parking it
	brief      bool             // its last attempt was brief; see lifecycle.Settlement
	idempotent bool             // its worker is idempotent: the result is stored before the ack
}

// state is the state of an event in flight. Only inflight changes it, according to transitions.
type state uint8

const (
	// checking: what must be known before it may run is being looked up. Set by the puller for an event that was
	// delivered before, is a replay, or is of an idempotent worker; read by check.
	checking state = iota
	// running: dispatch has it, in a queue or on a thread. Set by the puller for a first delivery, and by the settle
	// goroutine when the event is submitted again; read by settlements (an event in this state takes one), and by
	// drain.
	running
	// waiting: it waits in this process for its next run. Set by the settle goroutine after a failed run; read by
	// retries and drain.
	waiting
	// replying: its settlement is taken, and its reply, if it has one, is being published. Set by the settle goroutine;
	// read by no other step.
	replying
	// storing: something must be stored before it may end: a dead letter, a result, a record, the event itself
	// elsewhere. Set by the settle goroutine; read by the step that has stored it.
	storing
	// acking: its ack is queued or sent, and not confirmed. Set by the settle goroutine; read when it leaves, to count
	// it for its lane.
	acking
	// gone: it has left: its ack is confirmed, it was given back, or its lease is lost. Set when it is removed; a last
	// state.
	gone
	// aside: it could not be settled for long, and is about to be given back. Set by overdue; read by the steps that
	// were being tried, which end.
	aside
	// orphaned: it has left because its stream was deleted: no step may publish anything about it. Set by the settle
	// goroutine; a last state.
	orphaned
	states
)

// String is the name of the state in logs.
func (s state) String() string {
	return [...]string{"checking", "running", "waiting", "replying", "storing", "acking", "gone", "aside", "orphaned"}[s]
}

// transitions are the states that may follow each state.
var transitions = [states][]state{
	checking: {running, replying, storing, acking, gone, aside, orphaned},
	running:  {replying, storing, gone, orphaned},
	waiting:  {running, storing, acking, gone, orphaned},
	replying: {waiting, storing, acking, gone, aside, orphaned},
	storing:  {running, waiting, replying, acking, gone, aside, orphaned},
	acking:   {gone, orphaned},
	aside:    {acking, gone, orphaned},
}

// begin sets the first state, and the owner whose room the event takes. It is called before the entry is in the list.
func (h *entry) begin(s state, unspent string) {
	h.state.Store(uint32(s))
	h.unspent = unspent
}

// is reports whether the event is in a state.
func (h *entry) is(s state) bool { return state(h.state.Load()) == s }

// source is one JetStream consumer.
type source struct {
	stream, consumer string
	owner            string // for a lane of parked events: its name there, see parking.Owners
	// epoch counts how often the consumer was lost and created again. Acks of an older consumer's deliveries are not in
	// order with the newer ones, so they are not confirmed in a group.
	epoch atomic.Uint64
	// seen is the epoch for which maintenance has checked whether the stream is still the same. Until then, events that
	// an older consumer delivered are not acked or given back.
	seen atomic.Uint64
	acks []*entry // scratch of the settle goroutine
	flow flow
}

// leftEvent identifies an event that has left.
type leftEvent struct {
	stream string
	seq    uint64
	stored int64 // Unix time in nanoseconds
}

// idOf is the identity under which h is remembered after it has left.
func idOf(h *entry) leftEvent {
	return leftEvent{h.from.stream, h.event.Origin.Seq, h.stored.UnixNano()}
}

// resent is an event that has left and is remembered until a time.
type resent struct {
	leftEvent
	until time.Time
}

// recently is how many of the events that left last are known. nats-server writes the state of a consumer every 100 ms,
// and later on a busy machine. When it is killed, it loses the acks since. This is 400 ms at 40 000 events a second.
const recently = 1 << 14

const (
	// knownFor is for how many ack waits what was confirmed on the connection before is known. A server that was killed
	// delivers it again after one. On a busy machine that may be late.
	knownFor = 4
	// knownConnections is for how many connections it is known: a connection may break again and again.
	knownConnections = 4
)

// inflight is the list of all events that this process is responsible for.
type inflight struct {
	mu   sync.Mutex
	list []*entry
	n    atomic.Int64
	// places is how many places of the window the events in the list take. Written with the lock held.
	places  atomic.Int64
	outside outside // events in the list that take no place; see queueLetter
	// resent are events that have left and whose ack had to be sent again, or was confirmed on an earlier connection.
	// The server may have delivered them again meanwhile, and this process may not have handled that delivery yet.
	resent []resent
	// leftRecently are the events that left last, acked and confirmed. A server that is killed loses its latest
	// changes, and may deliver them again.
	leftRecently []leftEvent // at most recently
	oldest       int         // index in leftRecently, when it is full
	reconnects   uint64      // of the connection on which those in leftRecently were confirmed
	// replaced is called, with the lock held, with an event whose number another event of the stream has now.
	replaced func(h *entry)
	left     func(n int) // called, without the lock, when events have left
	// unspent is called, with the lock held, for each leaving event whose entry.unspent is set, with that owner.
	unspent func(owner string)

	requesters requesters // made for the first event with a requester

	settleTime time.Duration // see countTime
	ticked     time.Time     // when countTime or skipTime was last called
}

func (t *inflight) add(batch []*entry) {
	t.mu.Lock()
	for _, h := range batch {
		h.index = len(t.list)
		t.list = append(t.list, h)
		t.noteSettling(h)
		t.places.Add(int64(h.places))
		h.from.flow.comes()
		if h.event.Requester != nil {
			if t.requesters == nil {
				t.requesters = make(requesters)
			}
			t.requesters.add(h)
		}
	}
	t.n.Store(int64(len(t.list)))
	t.mu.Unlock()
}

// remove removes events. It skips those that have left already.
func (t *inflight) remove(batch ...*entry) { t.leave(gone, batch) }

// orphan removes events whose stream was deleted.
func (t *inflight) orphan(batch []*entry) { t.leave(orphaned, batch) }

func (t *inflight) leave(last state, batch []*entry) {
	t.mu.Lock()
	n := t.drop(last, batch)
	t.mu.Unlock()
	if n > 0 {
		t.left(n)
	}
}

// drop takes events from the list, and returns how many were in it. mu is held.
func (t *inflight) drop(last state, batch []*entry) (n int) {
	for _, h := range batch {
		ended := h.is(acking)
		if !h.become(last) {
			continue
		}
		t.freed(h, ended)
		if h.unspent != "" {
			t.unspent(h.unspent)
		}
		if h.event.Requester != nil {
			t.requesters.remove(h)
		}
		last := len(t.list) - 1
		t.list[h.index] = t.list[last]
		t.list[h.index].index = h.index
		t.list[last] = nil
		t.list = t.list[:last]
		n++
	}
	t.n.Store(int64(len(t.list)))
	return n
}

func (t *inflight) len() int { return int(t.n.Load()) }

// taken is how many places of the window the events in flight take.
func (t *inflight) taken() int { return int(t.places.Load()) }

// move changes the state of h from one of those in from; if from is empty, from any state that it may follow. It
// returns false when h is in none of these.
func (t *inflight) move(h *entry, to state, from ...state) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(from) > 0 && !slices.Contains(from, state(h.state.Load())) {
		return false
	}
	if !h.become(to) {
		return false
	}
	t.noteSettling(h)
	return true
}

// become is the only place where a state changes. inflight.mu is held.
func (h *entry) become(to state) bool {
	if !slices.Contains(transitions[h.state.Load()], to) {
		return false
	}
	h.state.Store(uint32(to))
	return true
}

// adopt finds the event in flight that is delivered again, and from then on acks the new delivery. acked means that the
// event has ended and left, and the delivery only needs another ack.
func (t *inflight) adopt(o events.Origin, stored time.Time, epoch uint64, now time.Time) (found, acked bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, h := range t.list {
		if h.event.Origin.Seq != o.Seq || h.from.stream != o.Stream {
			continue
		}
		if h.stored.Equal(stored) {
			h.ack, h.epoch, h.renewed = o.AckSubject, epoch, now
			return true, false
		}
		t.replaced(h)
	}
	g := leftEvent{o.Stream, o.Seq, stored.UnixNano()}
	for i := range t.resent {
		if t.resent[i].leftEvent == g {
			return true, true
		}
	}
	known := slices.Contains(t.leftRecently, g)
	return known, known
}

// confirmed removes events whose acks the server has confirmed, on a connection that is named by its number of
// reconnects. What the connection before it confirmed is known until a time: the server that delivers it again has
// perhaps been killed, and does so an ack wait later, when many other events have ended.
//
// It returns those that stay, and keeps only the others in batch. They stay because they were delivered again after
// their acks were sent. A server that was killed may have lost the deliveries that these acks name: it confirms such an
// ack, and waits for one of the new delivery.
func (t *inflight) confirmed(batch []*entry, reconnects uint64, now, until time.Time) (again []*entry) {
	t.mu.Lock()
	if t.reconnects != reconnects {
		t.reconnects = reconnects
		t.forget(now)
		for _, g := range t.leftRecently {
			t.resent = append(t.resent, resent{g, until})
		}
		t.resent = slices.Delete(t.resent, 0, max(0, len(t.resent)-knownConnections*recently))
		t.leftRecently, t.oldest = t.leftRecently[:0], 0
	}
	deliveredAgain := func(h *entry) bool { return h.ack != h.acked && h.is(acking) }
	for _, h := range batch {
		if deliveredAgain(h) {
			again = append(again, h)
			continue
		}
		if len(t.leftRecently) < recently {
			t.leftRecently = append(t.leftRecently, idOf(h))
		} else {
			t.leftRecently[t.oldest] = idOf(h)
			t.oldest = (t.oldest + 1) % recently
		}
	}
	n := t.drop(gone, slices.DeleteFunc(batch, deliveredAgain))
	t.mu.Unlock()
	if n > 0 {
		t.left(n)
	}
	return again
}

// forget removes those in resent whose time is over. mu is held.
func (t *inflight) forget(now time.Time) {
	t.resent = slices.DeleteFunc(t.resent, func(g resent) bool { return now.After(g.until) })
}

// remember keeps events in resent until a time, and forgets older ones.
func (t *inflight) remember(batch []*entry, now, until time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forget(now)
	for _, h := range batch {
		t.resent = append(t.resent, resent{idOf(h), until})
	}
}

// due lists the ack subjects of events whose lease was last renewed before before, and counts them as renewed now.
func (t *inflight) due(before, now time.Time, into []string) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, h := range t.list {
		if h.renewed.Before(before) {
			h.renewed = now
			into = append(into, h.ack)
		}
	}
	return into
}

// in lists the events in a state.
func (t *inflight) in(s state) []*entry {
	return t.filter(func(h *entry) bool { return h.is(s) })
}

// filter lists the events for which is returns true.
func (t *inflight) filter(is func(h *entry) bool) []*entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	var found []*entry
	for _, h := range t.list {
		if is(h) {
			found = append(found, h)
		}
	}
	return found
}

// unsure reports whether the stream of h may be another one by now. h came by one of the stream's lanes.
func (t *inflight) unsure(h *entry) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	epoch := h.from.epoch.Load()
	return h.epoch != epoch && h.from.seen.Load() != epoch && h.from.owner == ""
}

func (t *inflight) ackSubject(h *entry) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return h.ack
}

// renewedAt is when the server last heard of h.
func (t *inflight) renewedAt(h *entry) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return h.renewed
}
