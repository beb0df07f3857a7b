package consumer

import (
	"time"

	"github.com/pinwheel-run/pinwheel/consumer/attempts"
	"github.com/pinwheel-run/pinwheel/consumer/parking"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// postpone records a failed run and keeps the event until its delay is over: for a long delay, or when too many events
// wait already, in the stream of schedules, otherwise in this process. While it waits in this process, its record says
// that this delivery has no running attempt, so that a crash of the process does not count as an attempt.
func (s *settler) postpone(h *entry, o lifecycle.Outcome) {
	full := o.Delay > 0 && s.retries.full(h.event.Owner, s.cfg.Window)
	mayWait := (full || o.Delay > s.cfg.LongRetry) && s.waiting.May(&h.event, h.here)
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

// parkEvent sets an event aside until its owner has room, or until it is resumed. An event that was parked before is
// given back, unless it must wait apart from now on. An event of a schedule that does not overlap is delayed instead:
// the schedule's next tick must find it, so it stays in its stream.
func (s *settler) parkEvent(h *entry, why lifecycle.Order) {
	e, parked := &h.event, h.from.stream == events.StreamParked
	_, _, held := parking.SplitName(h.from.owner)
	switch {
	case parked && (why == lifecycle.Hold || why == lifecycle.HoldWorker && held):
		s.holdParked(h)
	case parked && why == lifecycle.Park:
		s.parked.Use(h.from.owner, func(int) int { return 0 })
		s.giveBack(h)
	case e.Overlaps() != events.OverlapAllow:
		s.parked.NotParked(e)
		again := parking.LookEvery
		if why.Holds() {
			again = heldAgain
		}
		s.delay(h, s.clock.Now().Add(again))
	default:
		s.inflight.move(h, storing)
		if parked {
			s.parked.Unspent(h.from.owner)
		}
		h.park.GoOn, h.park.Held = h.here, why == lifecycle.HoldWorker
		s.parker.Park(e, attempts.Carry(h.record), &h.park, func(isStored bool, err error) {
			if !isStored {
				s.overdue.cannotPark(h, err)
				return
			}
			h.park = parking.Try{}
			s.step(StepParkStored)
			s.endParked(h, why)
		})
	}
}

// heldAgain is for how long an event that is held is not delivered again, if it stays where it is. Such are at most
// those that were in queues when the pause began, and one for each schedule without overlap, which comes again and
// again.
const heldAgain = 5 * time.Second

// holdParked gives back an event that waits in the right place already. Requests from before the pause may be under
// way, and would get it again at once.
func (s *settler) holdParked(h *entry) {
	s.parked.Unspent(h.from.owner)
	s.inflight.move(h, storing)
	h.noteReturned()
	s.save(h, func() {
		s.step(StepReturnStored)
		s.nakFor(h, heldAgain)
	})
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
	case lifecycle.Park, lifecycle.Hold, lifecycle.HoldWorker:
		s.parkEvent(h, o)
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
			batch := []*lifecycle.Delivery{&h.event}
			if s.dispatcher.Submit(batch); h.cancelled {
				s.dispatcher.Cancel(batch, true)
			}
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
