package consumer

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"github.com/pinwheel-run/pinwheel/consumer/attempts"
	"github.com/pinwheel-run/pinwheel/consumer/jsapi"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
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

// postpone records a failed run and keeps the event until its delay is over: for a long delay, or when too many events
// wait already, in the stream of schedules, otherwise in this process. While it waits in this process, its record says
// that this delivery has no running attempt, so that a crash of the process does not count as an attempt.
func (s *settler) postpone(h *entry, o lifecycle.Outcome) {
	full := o.Delay > 0 && s.retries.full(h.event.Owner, s.cfg.Window)
	mayWait := (full || o.Delay > s.cfg.LongRetry) && s.waiting.May(h.event.Owner)
	if full && !mayWait {
		s.giveUp(h, o)
		return
	}
	now := time.Now()
	until := now.Add(o.Delay)
	f := events.FailedRun{At: s.clock.At(now), Attempt: h.event.Attempt, Node: s.cfg.Node, Batch: int(o.Batch),
		Asked: o.Asked}
	if o.Failure != nil {
		f.Reason, f.Message = o.Failure.Reason, o.Failure.Message
	}
	h.recorded().Fail(f)
	h.record.Returned++
	h.event.Attempt++
	h.reply = nil
	s.metrics.retries.Inc()
	switch {
	case mayWait:
		until = s.clock.At(until)
		h.record.Moving = &attempts.Moving{Until: until, Attempt: h.event.Attempt, Crashes: h.event.Crashes}
		s.inflight.move(h, storing)
		s.save(h, func() {
			s.step(StepMoveNoted)
			s.delay(h, until)
		})
	case s.draining.Load():
		s.giveBackRecorded(h)
	default:
		s.save(h, func() { s.step(StepRetryStored) })
		s.wait(h, until)
	}
}

// giveUp ends an event that failed, when neither this process nor JetStream has room for it until its next run: its
// owner has too many waiting. It becomes a dead letter, which counts in its owner's share.
func (s *settler) giveUp(h *entry, o lifecycle.Outcome) {
	f := events.Failure{}
	if o.Failure != nil {
		f = *o.Failure
	}
	f.Message += "; not run again: " + s.waiting.TooMany(h.event.Owner).Message
	s.log.Warn().Str("event", h.event.ID).Str("worker", h.event.Target()).Str("error", f.Message).
		Msg("event is not run again")
	o.Verdict, o.Failure = lifecycle.Dead, &f
	x := lifecycle.Settlement{Event: &h.event, Outcome: o}
	if h.event.ReplyTo != "" {
		x.Reply = h.event.FailureReply(&f)
	}
	s.carryOut(h, x)
}

// wait keeps h in this process until its next run is due.
func (s *settler) wait(h *entry, until time.Time) {
	if s.inflight.move(h, waiting) {
		s.retries.push(retryItem{until, h})
	}
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

// resubmit submits the events that are due again.
func (s *settler) resubmit(due []*entry) {
	if s.draining.Load() {
		for _, h := range due {
			s.giveBackWaiting(h)
		}
		return
	}
	batch := make([]*lifecycle.Delivery, 0, len(due))
	for _, h := range due {
		h.record.Returned--
		s.save(h, func() { s.step(StepRetryDue) })
		if s.inflight.move(h, running, waiting) {
			batch = append(batch, &h.event)
		}
	}
	if len(batch) > 0 {
		s.dispatcher.Submit(batch)
	}
}
