package perowner

import (
	"sync"

	"github.com/pinwheel-run/pinwheel/internal/lib/guard"
)

// Bounds limits a Queue. All fields are 1 or more.
type Bounds struct {
	// Most is how many items of all owners wait, and MostBytes how many bytes these have. An owner may have at most as
	// many of either as are free, so half of them while no other owner has any.
	Most, MostBytes int
	// Workers is how many items are done at once, and PerOwner how many of one owner. An owner that has one under way
	// gets another only while more workers than it uses are idle.
	Workers, PerOwner int
}

// Queue does the work of owners: the items of one owner in the order in which they came, and owners in turn. It starts
// up to Bounds.Workers goroutines when they are needed first, and keeps them until Close. Make it with NewQueue. Any
// goroutine may call its methods.
type Queue[T any] struct {
	bounds Bounds
	do     func(item T)

	mu          sync.Mutex
	wake        sync.Cond // of workers that wait: there is an item, or the queue is closed
	of          map[string]*line[T]
	first, last *line[T]   // of the lines with items that wait, in the order of their turns
	spare       []*line[T] // lines without an owner, to use again
	n           int        // items that wait
	bytes       int        // that they have
	busy        int        // items under way
	idle        int        // workers that wait and are not woken
	workers     int
	closed      bool
	running     sync.WaitGroup
}

// line has the items of one owner. It exists while there are some that wait or are under way.
type line[T any] struct {
	owner string
	after *line[T] // whose turn is after this one's
	items []sized[T]
	head  int // index of the next item
	bytes int // of the items that wait
	busy  int // items under way
}

// waiting returns how many items wait.
func (l *line[T]) waiting() int { return len(l.items) - l.head }

// take takes the next item out of the line. There must be one.
func (l *line[T]) take() sized[T] {
	i := l.items[l.head]
	l.items[l.head] = sized[T]{}
	l.head++
	l.bytes -= i.size
	if waiting := l.waiting(); l.head > waiting { // use the room of items that are gone again
		n := copy(l.items, l.items[l.head:])
		clear(l.items[n:])
		l.items, l.head = l.items[:n], 0
	}
	return i
}

type sized[T any] struct {
	item T
	size int
}

// maxSpare is how many lines are kept to use again.
const maxSpare = 64

// NewQueue returns a queue that passes each item to do.
func NewQueue[T any](b Bounds, do func(item T)) *Queue[T] {
	q := &Queue[T]{bounds: b, do: do, of: map[string]*line[T]{}}
	q.wake.L = &q.mu
	return q
}

// Push adds an item of size bytes. It returns false, and keeps nothing, when the owner has too many or the queue is
// closed. It never waits.
func (q *Queue[T]) Push(owner string, size int, item T) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if guard.OwnerQueues.Off() {
		owner = "" // one queue for all
	}
	l, n, bytes := q.of[owner], 0, 0
	if l != nil && owner != "" {
		n, bytes = l.waiting(), l.bytes
	}
	if q.closed || n >= q.bounds.Most-q.n || bytes+size > q.bounds.MostBytes-q.bytes {
		return false
	}
	if l == nil {
		l = q.newLine(owner)
	}
	if l.waiting() == 0 {
		q.enqueue(l)
	}
	l.items = append(l.items, sized[T]{item, size})
	l.bytes += size
	q.n++
	q.bytes += size
	switch {
	case q.idle > 0:
		q.wakeOne()
	case q.workers < q.bounds.Workers:
		q.workers++
		q.running.Go(q.work)
	}
	return true
}

// Close takes no more items. It returns when those that wait are done.
func (q *Queue[T]) Close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.wake.Broadcast()
	q.running.Wait()
}

// work does items until the queue is closed and nothing waits.
func (q *Queue[T]) work() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		l, i := q.next()
		if l == nil && q.closed && q.n == 0 {
			return
		}
		if l == nil {
			q.idle++
			q.wake.Wait() // who wakes it counts it as not idle
			continue
		}
		q.mu.Unlock()
		q.do(i)
		q.mu.Lock()
		q.done(l)
	}
}

// next takes the item whose turn it is. The line is nil when no item may be under way now. q.mu must be held.
func (q *Queue[T]) next() (*line[T], T) {
	var before *line[T]
	for l := q.first; l != nil; before, l = l, l.after {
		if !q.mayBegin(l) {
			continue
		}
		q.dequeue(before, l)
		i := l.take()
		if l.waiting() > 0 {
			q.enqueue(l)
		}
		l.busy++
		q.busy++
		q.n--
		q.bytes -= i.size
		return l, i.item
	}
	var none T
	return nil, none
}

// mayBegin reports whether another item of a line may be under way now. q.mu must be held.
func (q *Queue[T]) mayBegin(l *line[T]) bool {
	return l.busy == 0 || guard.OwnerQueues.Off() || l.busy < min(q.bounds.PerOwner, q.bounds.Workers-q.busy)
}

// done ends an item of a line. q.mu must be held.
func (q *Queue[T]) done(l *line[T]) {
	l.busy--
	q.busy--
	if l.busy == 0 && l.waiting() == 0 {
		q.drop(l)
	}
	if q.n > 0 && q.idle > 0 {
		q.wakeOne() // an item that had to wait for this one may be under way now
	}
	if q.n == 0 && q.closed {
		q.wake.Broadcast()
	}
}

// wakeOne wakes one worker that waits. It is not idle from now on, so that the next item wakes another. q.mu must be
// held.
func (q *Queue[T]) wakeOne() {
	q.idle--
	q.wake.Signal()
}

// enqueue gives a line a turn after all others. q.mu must be held.
func (q *Queue[T]) enqueue(l *line[T]) {
	if q.last == nil {
		q.first = l
	} else {
		q.last.after = l
	}
	q.last = l
}

// dequeue takes the turn of a line, which is that after before, or the first. q.mu must be held.
func (q *Queue[T]) dequeue(before, l *line[T]) {
	if before == nil {
		q.first = l.after
	} else {
		before.after = l.after
	}
	if q.last == l {
		q.last = before
	}
	l.after = nil
}

// newLine returns the line of an owner that has none. q.mu must be held.
func (q *Queue[T]) newLine(owner string) *line[T] {
	var l *line[T]
	if last := len(q.spare) - 1; last >= 0 {
		l, q.spare = q.spare[last], q.spare[:last]
	} else {
		l = &line[T]{}
	}
	l.owner = owner
	q.of[owner] = l
	return l
}

// drop removes a line that has no items. q.mu must be held.
func (q *Queue[T]) drop(l *line[T]) {
	delete(q.of, l.owner)
	if len(q.spare) < maxSpare && cap(l.items) <= maxSpare { // a flood does not keep its memory
		q.spare = append(q.spare, l)
	}
}
