package consumer

import "github.com/pinwheel-run/pinwheel/events"

// watch notes in the event's record that it is about to run, and submits it again when that is stored. If the process then
// dies before the record says otherwise, it died while this event ran. It runs on the settle goroutine.
func (c *Consumer) watch(h *held, alone bool) {
	if h.record == nil {
		h.record = &record{}
	}
	r := h.record
	r.Watched, r.Running, r.Alone = true, true, alone
	r.version++
	// Without an end: unwatched it must not run.
	c.put(h, *r, newRetrier(0), func() {
		h.event.Watched = true
		if c.table.move(h, running, settling) {
			c.dispatcher.Submit([]*events.Event{h.event})
		}
	})
}

// share notes that the event, which runs, is not alone any more. It runs on the settle goroutine.
func (c *Consumer) share(h *held) {
	if h.record != nil && h.record.Alone {
		h.record.Alone = false
		c.store(h, nil)
	}
}

// unwatch notes that h, a watched event, does not run any more. If that must be stored first it is true, and the settlement comes
// again then, without its reply. It runs on the settle goroutine.
func (c *Consumer) unwatch(h *held, s events.Settlement) bool {
	h.rest()
	if v := s.Outcome.Verdict; v != events.Ack && v != events.Dead {
		return false // their records are stored anyway
	}
	if h.once && s.Reply != nil {
		h.answer = s.Reply // the result is still to be kept
	}
	s.Reply = nil
	c.store(h, func() { c.carryOut(h, s) })
	return true
}

// rest is for an event that does not run any more.
func (h *held) rest() {
	h.event.Watched = false
	if h.record != nil {
		h.record.Running, h.record.Alone = false, false
	}
}
