package consumer

import (
	"context"
	"time"

	"github.com/pinwheel-run/pinwheel/consumer/attempts"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// recorder stores the records of events in flight. Its methods run on the settle goroutine.
type recorder struct {
	store    *attempts.Store
	ackWait  time.Duration
	instance string // of this process
}

// save stores h's record and then calls then (may be nil), whether or not it was stored. A lost record only makes the
// number of attempts too high.
func (r *recorder) save(h *entry, then func()) {
	h.record.Version++
	h.record.Stored = h.event.Stored.UnixNano()
	r.put(h, r.ackWait/2, then)
}

func (r *recorder) put(h *entry, limit time.Duration, then func()) {
	if then == nil {
		then = func() {}
	}
	if h.is(orphaned) { // another event may have its number
		then()
		return
	}
	now := *h.record
	stale := func() bool { return h.record == nil || h.record.Version != now.Version }
	r.store.Put(&h.event.Event, now, limit, stale, then)
}

// begins notes that a watched event is about to run, and calls then when that is stored. It tries until it is stored,
// because the event must not run unwatched.
func (r *recorder) begins(h *entry, alone bool, then func()) {
	now := h.recorded()
	now.Watched, now.Running, now.Alone, now.Instance = true, true, alone, r.instance
	now.Version++
	r.put(h, 0, then)
}

// share notes that the running event no longer runs alone.
func (r *recorder) share(h *entry) {
	if h.record != nil && h.record.Alone {
		h.record.Alone = false
		r.save(h, nil)
	}
}

// recorded is the record of h, a new one if it has none.
func (h *entry) recorded() *attempts.Record {
	if h.record == nil {
		h.record = &attempts.Record{}
	}
	return h.record
}

// noteReturned counts a delivery without a run.
func (h *entry) noteReturned() {
	h.recorded()
	h.rest()
	h.record.Returned++
}

// rest notes that an event no longer runs.
func (h *entry) rest() {
	h.event.Watched = false
	h.record.Rest()
}

// noteAnswer notes a reply that may become a result.
func (h *entry) noteAnswer(r *events.Reply) {
	if h.idempotent && r != nil {
		h.answer = r
	}
}

// Holds implements lifecycle.Holder.
func (h *entry) Holds() *lifecycle.Delivery { return &h.event }

// recordEnded records how other processes ended, before this one takes an event that ran in them. Without that, an
// event that ended them needs more crashes until it is known.
func (c *Consumer) recordEnded(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lastMessages)
	defer cancel()
	for _, e := range c.cfg.Ended {
		if err := attempts.PutEnded(ctx, c.js, e); err != nil {
			c.log.Warn().Err(err).Stringer("cause", e.Cause).Msg("how a process ended could not be recorded")
		}
	}
}
