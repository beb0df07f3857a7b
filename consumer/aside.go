package consumer

import (
	"time"

	"github.com/pinwheel-run/pinwheel/consumer/attempts"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// decideAgain submits an event that could not be parked, so that dispatch decides again.
func (s *settler) decideAgain(h *entry) {
	if s.inflight.move(h, running, storing) {
		h.event.Parked = true // it need not wait behind parked events: they may wait for its place
		s.dispatcher.Submit([]*lifecycle.Delivery{&h.event})
	}
}

// delayAgain delays an event whose record says so. It was redelivered because its ack was lost.
func (s *settler) delayAgain(h *entry, r *attempts.Record) {
	h.record, h.event.Attempt, h.event.Crashes = r, r.Moving.Attempt, r.Moving.Crashes
	h.event.CrashedAlone = h.event.CrashedAlone || r.CrashedAlone
	s.delay(h, r.Moving.Until)
}

// cannotDelay handles an event whose headers, with the added ones, do not fit. A retry then waits in this process,
// unless too many wait there already.
func (s *settler) cannotDelay(h *entry, until time.Time, err error) {
	if h.record == nil || h.record.Moving == nil || s.retries.full(h.event.Owner, s.cfg.Window) {
		s.refuse(h, events.Fail(events.ReasonMalformed, "the event cannot be put off: %v", err))
		return
	}
	h.record.Moving = nil
	s.save(h, nil)
	s.wait(h, s.clock.Own(until))
}
