package consumer

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
)

// held is an event that this process answers for, from delivery until its end is confirmed.
// The fields without a note belong to whoever acts on the event at the moment: puller, then
// the settle goroutine or an answer that it waits for; never two at once.
type held struct {
	event  *events.Event
	from   *source
	stored time.Time // by from's stream
	index  int       // in the table; guarded by table.mu
	nth    int       // among those of its requester; guarded by table.mu

	ack     string    // ack subject of the newest delivery; guarded by table.mu
	epoch   uint64    // of from, at the newest delivery; guarded by table.mu
	renewed time.Time // when the server last heard of it; guarded by table.mu
	phase   phase     // guarded by table.mu

	unspent    string // whose room it takes: it was parked, and dispatch, which tells of room, has not seen it
	superseded bool   // the schedule's next tick is there; settle goroutine only
	lapsed     bool   // its stream was deleted; settle goroutine only
	ended      bool   // its ack is being sent; settle goroutine only, until it leaves

	record   *record       // nil: the bucket has none
	reply    *events.Reply // what was said, unless its body comes in chunks; kept until the ack is confirmed
	absences uint64        // of the process, when it was delivered
	said     uint64        // reconnects of the connection when the reply was published
	tries    *retrier      // of whatever is being sent for it now
	dead     bool          // it has its dead letter
	brief    bool          // its last attempt was; see events.Settlement
	once     bool          // its worker is idempotent: the result is stored before the ack

	answer *events.Reply // the last, of an idempotent worker: its result if it succeeds
}

// phase is where a held event is.
type phase uint8

const (
	loading  phase = iota // its attempts are being looked up
	running               // dispatch has it
	waiting               // for its retry to be due
	settling              // its end is being carried out
	gone                  // not held any more
)

// source is one JetStream consumer.
type source struct {
	stream, consumer string
	owner            string // of a lane of parked events
	// epoch counts how often the consumer was lost and made again. Acks of deliveries of an older
	// one are not in order with the newer, so they are not confirmed in a group.
	epoch atomic.Uint64
	// seen is the epoch for which it was looked whether the stream is still the same. Until then nothing is said of what an older one brought.
	seen atomic.Uint64
	acks []*held // scratch of the settle goroutine
	flow flow
}

// ghost is an event that is held no more.
type ghost struct {
	stream string
	seq    uint64
	stored time.Time
	until  time.Time // it is to be known; zero: no matter
}

func (g *ghost) is(o events.Origin, stored time.Time) bool {
	return g.seq == o.Seq && g.stream == o.Stream && g.stored.Equal(stored)
}

// table is the list of all held events.
type table struct {
	mu   sync.Mutex
	list []*held
	n    atomic.Int64
	// ghosts are events that have left after their ack had to be sent again: the server may have
	// delivered them once more meanwhile, and that delivery may still be on its way through here.
	ghosts []ghost
	// recent are the events that left last, acked and confirmed: a server that is killed forgets its last moments.
	recent [1024]ghost
	oldest int // in recent
	// replaced is called, with the lock held, with a held event under whose number its stream has another one now.
	replaced func(h *held)
	// left is called, without lock, when events have left.
	left func(n int)
	// unspent is called, with the lock held, for each owner of such an event that leaves.
	unspent func(owner string)

	requesters requesters // made when the first is held
}

func (t *table) add(batch []*held) {
	t.mu.Lock()
	for _, h := range batch {
		h.index = len(t.list)
		t.list = append(t.list, h)
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

// remove lets events go. Those that are gone already are left out.
func (t *table) remove(batch ...*held) {
	n := 0
	t.mu.Lock()
	for _, h := range batch {
		if h.phase == gone {
			continue
		}
		h.phase = gone
		h.from.flow.leaves(h.ended)
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
	t.mu.Unlock()
	if n > 0 {
		t.left(n)
	}
}

func (t *table) len() int { return int(t.n.Load()) }

// move takes h from one phase to another; false when it is in none of the former.
func (t *table) move(h *held, to phase, from ...phase) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range from {
		if h.phase == p {
			h.phase = to
			return true
		}
	}
	return false
}

// adopt finds the held event that a delivery repeats, and answers to the new delivery from then on.
// acked: the event has ended and left, and the delivery wants no more than another ack.
func (t *table) adopt(o events.Origin, stored time.Time, epoch uint64, now time.Time) (found, acked bool) {
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
	for i := range t.ghosts {
		if t.ghosts[i].is(o, stored) {
			return true, true
		}
	}
	for i := range t.recent {
		if t.recent[i].is(o, stored) {
			return true, true
		}
	}
	return false, false
}

// confirmed lets events go whose acks the server has confirmed.
func (t *table) confirmed(batch []*held) {
	t.mu.Lock()
	for _, h := range batch {
		t.recent[t.oldest] = ghost{stream: h.from.stream, seq: h.event.Origin.Seq, stored: h.stored}
		t.oldest = (t.oldest + 1) % len(t.recent)
	}
	t.mu.Unlock()
	t.remove(batch...)
}

// remember keeps events as ghosts until a time, and forgets older ones.
func (t *table) remember(batch []*held, now, until time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ghosts = slices.DeleteFunc(t.ghosts, func(g ghost) bool { return now.After(g.until) })
	for _, h := range batch {
		t.ghosts = append(t.ghosts, ghost{h.from.stream, h.event.Origin.Seq, h.stored, until})
	}
}

// due lists the ack subjects of events that the server has not heard of since before, and counts
// them as renewed now.
func (t *table) due(before, now time.Time, into []string) []string {
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

// in lists the events in a phase.
func (t *table) in(p phase) []*held {
	return t.those(func(h *held) bool { return h.phase == p })
}

// those lists the events of which is is true.
func (t *table) those(is func(h *held) bool) []*held {
	t.mu.Lock()
	defer t.mu.Unlock()
	var found []*held
	for _, h := range t.list {
		if is(h) {
			found = append(found, h)
		}
	}
	return found
}

// holds reports whether h is held still.
func (t *table) holds(h *held) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return h.phase != gone
}

// unsure reports whether the stream of h, which one of its lanes brought, may be another one by now.
func (t *table) unsure(h *held) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	epoch := h.from.epoch.Load()
	return h.epoch != epoch && h.from.seen.Load() != epoch && h.from.owner == ""
}

func (t *table) ackSubject(h *held) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return h.ack
}
