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
	of   map[string]int // how many of each owner
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

// postpone records a failed run and sets the event aside until its delay is over: for long, or when too many wait already, in
// the stream of schedules, else here. While it waits here, its record says that this delivery has no run going on, so that a crash of this process
// meanwhile is no attempt. It runs on the settle goroutine.
func (c *Consumer) postpone(h *held, o events.Outcome) {
	crowded := o.Delay > 0 && c.retries.crowded(h.event.Owner, c.cfg.Window)
	mayWait := (crowded || o.Delay > c.cfg.LongRetry) && c.mayWait(h.event.Owner)
	if crowded && !mayWait {
		c.giveUp(h, o)
		return
	}
	now := time.Now()
	if h.record == nil {
		h.record = &record{}
	}
	until := now.Add(o.Delay)
	f := failed{At: c.clock.at(now), Attempt: h.event.Attempt, Node: c.cfg.Node}
	if o.Failure != nil {
		f.Reason, f.Message = o.Failure.Reason, o.Failure.Message
	}
	h.record.fail(f)
	h.record.Returned++
	h.event.Attempt++
	h.reply = nil
	c.metrics.retries.Inc()
	switch {
	case mayWait:
		until = c.clock.at(until)
		h.record.Moved = &moved{until, h.event.Attempt, h.event.Crashes}
		c.store(h, func() {
			c.step(StepMoveNoted)
			c.putOff(h, until)
		})
	case c.draining.Load():
		c.store(h, func() { c.nak(h) })
	default:
		c.store(h, func() { c.step(StepRetryStored) })
		c.wait(h, until)
	}
}

// giveUp ends an event that failed, and for which neither this process has room until its next run nor JetStream: its owner has too many waiting. It becomes
// a dead letter, of which its owner has its share.
func (c *Consumer) giveUp(h *held, o events.Outcome) {
	f := events.Failure{}
	if o.Failure != nil {
		f = *o.Failure
	}
	f.Message += "; not run again: " + c.tooManyWait(h.event.Owner).Message
	c.log.Warn().Str("event", h.event.ID).Str("worker", h.event.Target()).Str("error", f.Message).Msg("event is not run again")
	o.Verdict, o.Failure = events.Dead, &f
	s := events.Settlement{Event: h.event, Outcome: o}
	if h.event.ReplyTo != "" {
		s.Reply = events.FailureReply(h.event, &f)
	}
	c.carryOut(h, s)
}

// wait keeps h in this process until its next run is due.
func (c *Consumer) wait(h *held, until time.Time) {
	if c.table.move(h, waiting, settling) {
		c.retries.push(retryItem{until, h})
	}
}

// crowded reports whether as many wait already as may: of an owner a quarter of the window, of all half of it. More leave the
// process, however soon they are due.
func (r *retries) crowded(owner string, window int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.heap) >= window/2 || r.of[owner] >= max(1, window/4)
}

func (r *retries) push(item retryItem) {
	r.mu.Lock()
	heap.Push(&r.heap, item)
	r.of[item.held.event.Owner]++
	r.mu.Unlock()
	signal(r.wake)
}

// pop takes what is due; next is when the first of the rest is due.
func (r *retries) pop(now time.Time) (due []*held, next time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.heap) > 0 && !r.heap[0].due.After(now) {
		h := heap.Pop(&r.heap).(retryItem).held
		r.left(h.event.Owner)
		due = append(due, h)
	}
	if len(r.heap) == 0 {
		return due, time.Hour
	}
	return due, r.heap[0].due.Sub(now)
}

// left: one of owner's waits no longer. The lock is held.
func (r *retries) left(owner string) {
	if r.of[owner]--; r.of[owner] <= 0 {
		delete(r.of, owner)
	}
}

// drop takes one out.
func (r *retries) drop(h *held) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.heap {
		if r.heap[i].held == h {
			heap.Remove(&r.heap, i)
			r.left(h.event.Owner)
			return
		}
	}
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
	clear(r.of)
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
