package consumer

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
)

// retries holds the events that wait to be run again, the next due first.
type retries struct {
	mu   sync.Mutex
	heap retryHeap
	wake chan struct{}
}

type retryItem struct {
	due  time.Time
	held *held
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

// postpone records a failed run and sets the event aside until its delay is over. While it
// waits, its record says that this delivery has no run going on, so that a crash of this process
// meanwhile is no attempt. It runs on the settle goroutine.
func (c *Consumer) postpone(h *held, o events.Outcome) {
	now := time.Now()
	if h.record == nil {
		h.record = &record{}
	}
	f := failed{At: now, Attempt: h.event.Attempt, Node: c.cfg.Node}
	if o.Failure != nil {
		f.Reason, f.Message = o.Failure.Reason, o.Failure.Message
	}
	h.record.fail(f)
	h.record.Returned++
	h.event.Attempt++
	h.reply = nil
	c.metrics.retries.Inc()
	if c.draining.Load() {
		c.store(h, func() { c.nak(h) })
		return
	}
	c.store(h, func() { c.step(StepRetryStored) })
	if c.table.move(h, waiting, settling) {
		c.retries.push(retryItem{now.Add(o.Delay), h})
	}
}

func (r *retries) push(item retryItem) {
	r.mu.Lock()
	heap.Push(&r.heap, item)
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// pop takes what is due; next is when the first of the rest is due.
func (r *retries) pop(now time.Time) (due []*held, next time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.heap) > 0 && !r.heap[0].due.After(now) {
		due = append(due, heap.Pop(&r.heap).(retryItem).held)
	}
	if len(r.heap) == 0 {
		return due, time.Hour
	}
	return due, r.heap[0].due.Sub(now)
}

// takeAll empties it.
func (r *retries) takeAll() []*held {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]*held, 0, len(r.heap))
	for _, item := range r.heap {
		all = append(all, item.held)
	}
	r.heap = nil
	return all
}

// retryLoop submits events again when they are due.
func (c *Consumer) retryLoop(life context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-life.Done():
			return
		case <-c.retries.wake:
		case <-timer.C:
		}
		due, next := c.retries.pop(time.Now())
		timer.Reset(next)
		if len(due) > 0 {
			c.do(func() { c.resubmit(due) })
		}
	}
}

// resubmit runs on the settle goroutine.
func (c *Consumer) resubmit(due []*held) {
	if c.draining.Load() {
		for _, h := range due {
			c.nakWaiting(h)
		}
		return
	}
	batch := make([]*events.Event, 0, len(due))
	for _, h := range due {
		h.record.Returned--
		c.store(h, func() { c.step(StepRetryDue) })
		if c.table.move(h, running, waiting) {
			batch = append(batch, h.event)
		}
	}
	if len(batch) > 0 {
		c.dispatcher.Submit(batch)
	}
}

// nakWaiting gives back an event whose record says already that nothing of it runs.
func (c *Consumer) nakWaiting(h *held) {
	if c.table.move(h, settling, waiting) {
		c.nak(h)
	}
}
