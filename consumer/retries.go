package consumer

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"github.com/pinwheel-run/pinwheel/consumer/jsapi"
)

// retries has the events that wait to be run again, the next due first.
type retries struct {
	mu   sync.Mutex
	heap retryHeap
	of   map[string]int // places in the window that the events of each owner take
	all  int            // the sum of of
	wake chan struct{}
}

func newRetries() *retries { return &retries{wake: make(chan struct{}, 1), of: make(map[string]int)} }

type retryItem struct {
	due   time.Time
	entry *entry
}

type retryHeap []retryItem

func (h retryHeap) Len() int           { return len(h) }
func (h retryHeap) Less(i, j int) bool { return h[i].due.Before(h[j].due) }
func (h retryHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *retryHeap) Push(x any)        { *h = append(*h, x.(retryItem)) }
func (h *retryHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = retryItem{}
	*h = old[:len(old)-1]
	return last
}

// full reports whether the maximum number of events waits already: a quarter of the window for an owner, half of it
// for all. Further events leave the process, however soon they are due.
func (r *retries) full(owner string, window int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all >= window/2 || r.of[owner] >= max(1, window/4)
}

func (r *retries) push(item retryItem) {
	r.mu.Lock()
	heap.Push(&r.heap, item)
	r.of[item.entry.event.Owner] += item.entry.places
	r.all += item.entry.places
	r.mu.Unlock()
	jsapi.Signal(r.wake)
}

// pop removes and returns the events that are due. next is the time until the first of the rest is due.
func (r *retries) pop(now time.Time) (due []*entry, next time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.heap) > 0 && !r.heap[0].due.After(now) {
		h := heap.Pop(&r.heap).(retryItem).entry
		r.left(h)
		due = append(due, h)
	}
	if len(r.heap) == 0 {
		return due, time.Hour
	}
	return due, r.heap[0].due.Sub(now)
}

// left notes that an event no longer waits. The lock is held.
func (r *retries) left(h *entry) {
	r.all -= h.places
	if r.of[h.event.Owner] -= h.places; r.of[h.event.Owner] <= 0 {
		delete(r.of, h.event.Owner)
	}
}

// drop removes an event.
func (r *retries) drop(h *entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.heap {
		if r.heap[i].entry == h {
			heap.Remove(&r.heap, i)
			r.left(h)
			return
		}
	}
}

// takeAll removes and returns all events.
func (r *retries) takeAll() []*entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]*entry, 0, len(r.heap))
	for _, item := range r.heap {
		all = append(all, item.entry)
	}
	r.heap, r.all = nil, 0
	clear(r.of)
	return all
}

// run passes on the events that are due until life ends.
func (r *retries) run(life context.Context, due func([]*entry)) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-life.Done():
			return
		case <-r.wake:
		case <-timer.C:
		}
		batch, next := r.pop(time.Now())
		timer.Reset(next)
		if len(batch) > 0 {
			due(batch)
		}
	}
}
