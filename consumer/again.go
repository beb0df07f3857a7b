package consumer

import (
	"time"

	"github.com/pinwheel-run/pinwheel/consumer/attempts"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

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

// carryOutOrder does what dispatch asks for with h, about which there is no verdict.
func (s *settler) carryOutOrder(h *entry, o lifecycle.Order) {
	switch o {
	case lifecycle.Return:
		s.giveBack(h)
	case lifecycle.Park:
		s.parkEvent(h)
	case lifecycle.Watch, lifecycle.WatchAlone:
		s.watch(h, o == lifecycle.WatchAlone)
	case lifecycle.NoOrder, lifecycle.Share: // settle has handled them
	}
}

// watch notes in the event's record that it is about to run, and submits it again when that is stored. If the process
// then dies before the record says otherwise, it died while this event ran.
func (s *settler) watch(h *entry, alone bool) {
	s.inflight.move(h, storing)
	s.begins(h, alone, func() {
		h.event.Watched = true
		if s.inflight.move(h, running, storing) {
			s.dispatcher.Submit([]*lifecycle.Delivery{&h.event})
		}
	})
}

// unwatch notes that h, a watched event, no longer runs. It returns true if that must be stored first. Then the
// settlement is carried out again after that, without its reply.
func (s *settler) unwatch(h *entry, x lifecycle.Settlement) bool {
	h.rest()
	if v := x.Outcome.Verdict; v != lifecycle.Ack && v != lifecycle.Dead {
		return false // their records are stored anyway
	}
	if h.idempotent && x.Reply != nil {
		h.answer = x.Reply // the result must still be stored
	}
	x.Reply = nil
	s.save(h, func() { s.carryOut(h, x) })
	return true
}
