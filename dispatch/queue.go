package dispatch

import (
	"time"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// item is one queued event.
type item struct {
	event *lifecycle.Delivery // of a batch, the first
	route *route
	since time.Time // when it was submitted
	batch *batch    // nil = event alone
}

// maxOvertaken is how many events of its owner may go before an older one that waited for the limit of its worker. It
// bounds the search for the place of that one.
const maxOvertaken = 64

// keptItems is the largest buffer that an empty queue keeps.
const keptItems = 8

// queue is a double-ended queue of items in a ring buffer. The zero queue is empty.
type queue struct {
	items []item // its length is a power of two
	first int
	n     int
}

func (q *queue) at(i int) *item { return &q.items[(q.first+i)&(len(q.items)-1)] }

func (q *queue) front() *item { return q.at(0) }

func (q *queue) pushBack(it item) {
	q.grow()
	q.n++
	*q.at(q.n - 1) = it
}

func (q *queue) pushFront(it item) {
	q.grow()
	q.first = (q.first - 1) & (len(q.items) - 1)
	q.n++
	*q.at(0) = it
}

// insert puts an event before the first one that was submitted after it, and a service call before the first event that
// is none; but at most maxOvertaken from the front.
func (q *queue) insert(it item) {
	goes := func(other *item) bool { return !other.since.After(it.since) }
	if it.event.Service != nil {
		goes = func(other *item) bool { return other.event.Service != nil }
	}
	before := 0
	for before < min(q.n, maxOvertaken) && goes(q.at(before)) {
		before++
	}
	q.pushFront(it)
	for i := range before {
		*q.at(i) = *q.at(i + 1)
	}
	*q.at(before) = it
}

func (q *queue) popFront() item {
	p := q.at(0)
	it := *p
	*p = item{}
	q.first = (q.first + 1) & (len(q.items) - 1)
	q.n--
	q.release()
	return it
}

// filter keeps the items for which keep is true, in their order.
func (q *queue) filter(keep func(*item) bool) {
	kept := 0
	for i := range q.n {
		if it := q.at(i); keep(it) {
			*q.at(kept) = *it
			kept++
		}
	}
	for i := kept; i < q.n; i++ {
		*q.at(i) = item{}
	}
	q.n = kept
	q.release()
}

func (q *queue) grow() {
	if q.n < len(q.items) {
		return
	}
	items := make([]item, max(4, 2*len(q.items)))
	for i := range q.n {
		items[i] = *q.at(i)
	}
	q.items, q.first = items, 0
}

func (q *queue) release() {
	if q.n == 0 && len(q.items) > keptItems {
		*q = queue{}
	}
}

// batch is the events of an item, if it has several or is of a queue handler.
type batch struct {
	items []item // without batches
}

// filter keeps the events of an item for which keep is true. It returns how many have gone, and whether any is left.
func (it *item) filter(keep func(item) bool) (gone int, left bool) {
	if it.batch == nil {
		if keep(*it) {
			return 0, true
		}
		return 1, false
	}
	kept := it.batch.items[:0]
	for _, one := range it.batch.items {
		if keep(one) {
			kept = append(kept, one)
		}
	}
	gone = len(it.batch.items) - len(kept)
	clear(it.batch.items[len(kept):])
	it.batch.items = kept
	if len(kept) > 0 {
		it.event, it.since = kept[0].event, kept[0].since
	}
	return gone, len(kept) > 0
}

// n is the number of events of an item.
func (it *item) n() int {
	if it.batch == nil {
		return 1
	}
	return len(it.batch.items)
}

// events are the events of an item, for an attempt of a queue handler.
func (it *item) events() []*lifecycle.Delivery {
	if it.batch == nil {
		return []*lifecycle.Delivery{it.event}
	}
	list := make([]*lifecycle.Delivery, len(it.batch.items))
	for i := range list {
		list[i] = it.batch.items[i].event
	}
	return list
}

// weight is how many bytes of a batch an event takes.
func weight(e *lifecycle.Delivery) int {
	n := len(e.Body)
	for name, values := range e.Header {
		for _, value := range values {
			n += len(name) + len(value)
		}
	}
	return n
}

// run is what dispatch keeps of an attempt that a thread has.
type run struct {
	lifecycle.Attempt
	one     [1]*lifecycle.Attempt // the batch of one, without an allocation of its own
	owner   *owner
	route   *route
	version *version
	since   time.Time     // when the event was submitted
	cost    time.Duration // what was taken from the owner's credit
	spent   time.Duration // what was counted in its share
	pool    *pool         // of the thread
	calls   int           // service calls under way; with any it has no place and no slot
	thread  uint8         // its index in the pool
	away    bool          // it runs beside its thread
	replied bool
	ended   bool
	back    bool // it was not made, and its events go back to where they waited
}

// began notes in its events when the attempt began; 0 = it has ended.
func (r *run) began(at int64) {
	r.Event.Begins(at)
	for _, e := range r.Batch {
		e.Begins(at)
	}
}

// warms is the thread as the version knows it: none if the owner has left the pool meanwhile.
func (r *run) warms() threadSet {
	if r.owner.pool != r.pool {
		return 0
	}
	return 1 << r.thread
}

// items are the events of an attempt, to be queued again.
func (r *run) items() []item {
	if len(r.Batch) < 2 {
		return []item{{event: r.Event, route: r.route, since: r.since}}
	}
	list := make([]item, len(r.Batch))
	for i, e := range r.Batch {
		list[i] = item{event: e, route: r.route, since: r.since}
	}
	return list
}
