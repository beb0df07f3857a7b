package consumer

import (
	"cmp"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/consumer/attempts"
	"github.com/pinwheel-run/pinwheel/consumer/cancel"
	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/consumer/jsapi"
	"github.com/pinwheel-run/pinwheel/consumer/schedule"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// This file is the only one that ends events: it decides on replies and acks, which reply.go and acks.go send, and
// gives back. All of it runs on the settle goroutine. Other packages store what must be stored first, and call back.
// The puller acks the new delivery of an event that has ended and left (inflight.adopt).

// settle carries out a settlement that came from dispatch.
func (s *settler) settle(x lifecycle.Settlement) {
	h, ok := x.Event.Holder.(*entry)
	switch {
	case !ok || h.Holds() != x.Event:
		s.log.Error().Str("event", x.Event.ID).Msg("settlement of an event that was never submitted; ignored")
	case h.is(orphaned):
		s.drop(x)
	case x.ReplyOnly():
		s.replyEarly(h, x)
	case x.Order == lifecycle.Share:
		s.share(h)
	case !s.inflight.move(h, replying, running):
		s.log.Error().Str("event", x.Event.ID).Str("worker", x.Event.Target()).Str("verdict", x.String()).
			Msg("second final settlement of an event; ignored")
	case h.replaced: // however its run ended, the event is replaced
		if x.Order.Parks() {
			s.parked.NotParked(x.Event)
		}
		x.Reply, x.Order = nil, lifecycle.NoOrder
		x.Outcome = lifecycle.Outcome{Verdict: lifecycle.Ack, Version: x.Outcome.Version}
		s.carryOut(h, x)
	case h.cancelled && (x.Outcome.Verdict == lifecycle.Retry ||
		x.Outcome.Verdict == lifecycle.None && !x.Order.Watches()): // a watched one has a place, which dispatch frees
		if x.Order.Parks() {
			s.parked.NotParked(x.Event)
		}
		answered := h.reply != nil
		if x = cancelled(x.Event); answered { // by the run that is not made again
			x.Reply = nil
		}
		s.carryOut(h, x)
	default:
		s.carryOut(h, x)
	}
}

// cancelled is the settlement of an event that is cancelled while none of its runs is in progress.
func cancelled(e *lifecycle.Delivery) lifecycle.Settlement {
	f := events.Cancelled()
	x := lifecycle.Settlement{Event: e, Outcome: lifecycle.Outcome{Verdict: lifecycle.Ack, Failure: f}}
	if e.ReplyTo != "" {
		x.Reply = e.FailureReply(f)
	}
	return x
}

// drop handles an event that has left: its stream was deleted, or it is set aside. Nothing is published for it.
func (s *finisher) drop(x lifecycle.Settlement) {
	if x.Order.Parks() {
		s.parked.NotParked(x.Event)
	}
	if x.Reply != nil && x.Reply.Stream != nil {
		x.Reply.Stream.Cancel("the event has left the process")
	}
}

// replyEarly publishes a reply that is ready before the run has ended.
func (s *settler) replyEarly(h *entry, x lifecycle.Settlement) {
	h.noteAnswer(x.Reply)
	if x.Reply == nil || x.Event.ReplyTo == "" {
		return
	}
	r, err := s.reply(x.Event, x.Reply)
	if err != nil {
		s.retrySettle(x, err)
	} else if x.Reply.Stream == nil {
		h.reply, h.repliedOn = r, s.reconnects
	}
}

// retrySettle settles again when a reply could not be published. It is a function of its own because a closure in
// settle would cost an allocation for every event.
func (s *settler) retrySettle(x lifecycle.Settlement, err error) {
	s.api.Repeats.Warn(err, "reply could not be published; trying again").Str("event", x.Event.ID).Send()
	s.api.Retry(jsapi.NewRetrier(s.cfg.AckWait), func() { s.settle(x) })
}

// carryOut publishes the reply to an event, and then carries out the outcome or the order. h is in the state replying.
func (s *settler) carryOut(h *entry, x lifecycle.Settlement) {
	if h.is(orphaned) || h.is(aside) { // since it was tried first
		s.drop(x)
		return
	}
	if f := x.Outcome.Failure; f != nil && f.Reason == events.ReasonCancelled {
		if h.silent {
			x.Reply = nil
		}
		if h.became != cancel.Cancelled { // else it is carried out again
			h.became = cancel.Cancelled
			s.noteCancelled(h, x.Outcome.Version == "")
		}
	}
	h.noteAnswer(x.Reply)
	h.brief = x.Brief
	if x.Reply != nil && x.Event.ReplyTo != "" {
		r, err := s.reply(x.Event, x.Reply)
		if err != nil {
			s.carryOutLater(h, x, err)
			return
		}
		h.reply, h.repliedOn, h.tries = r, s.reconnects, nil
		s.step(StepReplied)
	}
	if x.Event.Watched && s.unwatch(h, x) {
		return
	}
	s.output.ended(x.Event, x.Outcome)
	switch x.Outcome.Verdict {
	case lifecycle.Ack:
		s.succeed(h, x.Outcome)
	case lifecycle.Dead:
		s.die(h, x.Outcome)
	case lifecycle.Retry:
		s.postpone(h, x.Outcome)
	case lifecycle.None:
		s.carryOutOrder(h, x.Order)
	}
}

// carryOutLater tries again when the reply to h could not be published.
func (s *settler) carryOutLater(h *entry, x lifecycle.Settlement, err error) {
	s.api.Repeats.Warn(err, "reply could not be published; trying again").Str("event", x.Event.ID).Send()
	if !s.again(h, func() { s.carryOut(h, x) }) {
		s.leaseLost(h)
	}
}

// succeed acks an event that ran successfully. The result of an idempotent worker is stored first. If JetStream refuses
// the result, the event is acked anyway: that is not worth a second run.
func (s *settler) succeed(h *entry, o lifecycle.Outcome) {
	switch {
	case o.Failure != nil:
		s.end(h, deadletter.ReplayFailed, o.Failure, 0)
	case h.idempotent:
		m, tooLarge := s.results.Message(&h.event.Event, h.answer)
		if tooLarge > 0 {
			s.output.write(&h.event, h.answer.Version, tooLargeToKeep(tooLarge))
		}
		h.answer, h.tries = nil, nil
		s.inflight.move(h, storing)
		s.putResult(h, m)
	default:
		s.end(h, deadletter.ReplaySucceeded, nil, 0)
	}
	if h.became != cancel.Cancelled {
		s.metrics.ended(h.event.Kind, lifecycle.Ack)
	}
}

func (s *finisher) putResult(h *entry, m *nats.Msg) {
	s.results.Put(m, func(err error) {
		if err != nil {
			s.api.Repeats.Warn(err, "result of an idempotent worker could not be stored").Str("event", h.event.ID).Send()
			if s.again(h, func() { s.putResult(h, m) }) {
				return
			}
		}
		h.tries = nil
		s.step(StepResultStored)
		s.end(h, deadletter.ReplaySucceeded, nil, 0)
	})
}

// end acks h, and so ends it. For a replay, end first stores how it ended. If there is no room for that, the replay is
// acked anyway, and its end is not known.
func (s *finisher) end(h *entry, how deadletter.ReplayState, f *events.Failure, letter uint64) {
	r, ok := deadletter.ReplayOf(&h.event.Event)
	if !ok {
		s.ack(h)
		return
	}
	if h.replaced {
		how, f = deadletter.ReplayFailed, events.Fail(events.ReasonUnavailable, "the schedule's next tick replaced it")
	}
	s.inflight.move(h, storing)
	h.tries = nil
	s.endReplay(h, func(done func(error)) { s.claims.End(r, how, f, letter, s.clock.Now(), done) })
}

func (s *finisher) endReplay(h *entry, put func(done func(error))) {
	put(func(err error) {
		if err != nil {
			log := s.api.Repeats.Warn(err, "how a replay ended could not be stored")
			log.Str("event", h.event.ID).Str("worker", h.event.Target()).Send()
			if s.again(h, func() { s.endReplay(h, put) }) {
				return
			}
		}
		h.tries = nil
		s.step(StepEndStored)
		s.ack(h)
	})
}

// delay moves h, with its record, to the stream of schedules. It is delivered from there when it is due.
func (s *settler) delay(h *entry, until time.Time) {
	if h.is(orphaned) {
		return
	}
	s.inflight.move(h, storing)
	s.delays.Delay(&h.event, attempts.Carry(h.record), until, h.here, func(became schedule.Delayed, err error) {
		switch became {
		case schedule.DelayStored:
			h.became = cancel.Moved
			s.step(StepDelayed)
			s.ack(h)
		case schedule.DelayReplaced:
			s.endReplaced(h)
		case schedule.DelayGone:
			s.inflight.remove(h)
		case schedule.DelayRefused:
			s.cannotDelay(h, until, err)
		}
	})
}

// refuse settles an event that breaks the wire contract, or that finds no room. Dispatch never sees it.
func (s *settler) refuse(h *entry, f *events.Failure) {
	e := &h.event
	x := lifecycle.Settlement{Event: e, Outcome: lifecycle.Outcome{Verdict: lifecycle.Dead, Failure: f}}
	if e.ReplyTo != "" {
		x.Reply = e.FailureReply(f)
		if e.Kind == events.Fetch {
			x.Outcome.Verdict = lifecycle.Ack
		}
	}
	s.inflight.move(h, replying)
	s.carryOut(h, x)
}

// giveBack returns an event to the stream at once. It was not run, so this delivery is no attempt. That is recorded
// before the event can be delivered to another process.
func (s *settler) giveBack(h *entry) {
	s.inflight.move(h, storing)
	h.noteReturned()
	s.save(h, func() {
		s.step(StepReturnStored)
		s.nak(h, nakBody)
	})
}

// nakFor gives h back. It is not delivered again before delay is over.
func (s *finisher) nakFor(h *entry, delay time.Duration) {
	s.nak(h, fmt.Appendf(nil, `%s {"delay":%d}`, nakBody, delay.Nanoseconds()))
}

// giveBackRunning returns an event if it has no final settlement yet.
func (s *settler) giveBackRunning(h *entry) {
	if s.inflight.move(h, storing, running) {
		s.giveBack(h)
	}
}

// giveBackWaiting returns an event whose record already says that it does not run.
func (s *settler) giveBackWaiting(h *entry) {
	if s.inflight.move(h, storing, waiting) {
		s.nak(h, nakBody)
	}
}

// giveBackRecorded returns an event whose failed run is recorded.
func (s *settler) giveBackRecorded(h *entry) {
	s.inflight.move(h, storing)
	s.save(h, func() { s.nak(h, nakBody) })
}

// endReplaced acks an event that a newer tick replaces. No one is notified, and it does not count as a failure.
func (s *finisher) endReplaced(h *entry) {
	s.log.Info().Str("event", h.event.ID).Str("worker", h.event.Target()).Msg("event is ended: the schedule's next tick replaces it")
	h.tries = nil
	s.ack(h)
	s.metrics.ended(h.event.Kind, lifecycle.Ack)
}

// endClaimed acks a replay that does not run.
func (s *finisher) endClaimed(h *entry, c deadletter.Claim) {
	if c == deadletter.ClaimEnded {
		s.log.Info().Str("event", h.event.ID).Str("worker", h.event.Target()).Msg("replay has ended before, and its ack was lost; it is not run again")
	} else {
		s.log.Info().Str("event", h.event.ID).Str("worker", h.event.Target()).Msg("replay was published twice; this one is not run")
		s.metrics.replaysDropped.Inc()
	}
	s.ack(h)
}

// endParked acks an event that is stored among the parked ones.
func (s *finisher) endParked(h *entry, why lifecycle.Order) {
	h.became = cancel.Moved
	s.ack(h)
	s.metrics.ordered(h.event.Kind, why)
}

// endRecalled answers h with its stored result.
func (s *settler) endRecalled(h *entry, r *events.Reply) {
	if !s.inflight.move(h, replying, checking) {
		return
	}
	h.idempotent = false // there is nothing new to store
	s.metrics.recalled.Inc()
	s.carryOut(h, lifecycle.Settlement{Event: &h.event, Reply: r, Outcome: lifecycle.Outcome{Verdict: lifecycle.Ack}})
}

// endCancelled ends h, of which no run is in progress, as cancelled. It does nothing if h is being ended or moved.
func (s *settler) endCancelled(h *entry) {
	if s.inflight.move(h, running, checking) || s.inflight.move(h, running, waiting) || h.is(running) {
		s.settle(cancelled(&h.event))
	}
}

// answerDeleted answers for a cancelled event whose message was deleted before a process had it.
func (s *settler) answerDeleted(e *lifecycle.Delivery) {
	x := cancelled(e)
	if x.Reply != nil {
		if _, err := s.reply(e, x.Reply); err != nil {
			s.api.Repeats.Warn(err, "requester of a cancelled event could not be told").Str("event", e.ID).Send()
		}
	}
	s.attempts.Forget(&e.Event)
	s.parts.Drop(e)
	if r, ok := deadletter.ReplayOf(&e.Event); ok {
		s.claims.End(r, deadletter.ReplayFailed, x.Outcome.Failure, 0, s.clock.Now(), func(error) {})
	}
	s.metrics.cancelled(e.Kind)
	s.observeCancelled(e)
}

// endPubAcks acks answers of JetStream that were stored as events. No one is notified: they belong to no owner.
func (s *finisher) endPubAcks(batch []*entry) {
	for _, h := range batch {
		s.metrics.pubAckDropped(h.event.Origin.Subject)
		s.ack(h)
	}
}

// reply publishes the reply to e, and writes to its worker's output when it had to be replaced.
func (s *finisher) reply(e *lifecycle.Delivery, reply *events.Reply) (*events.Reply, error) {
	r, err := s.replies.publish(e, reply)
	if err == nil && r != reply {
		s.output.tooLarge(e, r)
	}
	return r, err
}

// replyAgain publishes again a reply that was sent on a lost connection.
func (s *finisher) replyAgain(h *entry) { s.replies.again(&h.event, h.reply) }

// ack queues the ack of h.
func (s *finisher) ack(h *entry) {
	if s.inflight.move(h, acking) {
		if h.cancelled {
			s.cancels.End(h.cancelID(), cmp.Or(h.became, cancel.Ended), time.Now())
		}
		h.noteEnded()
		s.acks.queue(h)
	}
}

// nak gives h back.
func (s *finisher) nak(h *entry, body []byte) {
	if h.is(orphaned) || h.is(acking) || h.is(gone) { // what was being tried when it was set aside may have succeeded
		return
	}
	if s.inflight.unsure(h) {
		s.api.DoIn(unsureWait, func() { s.nak(h, body) })
		return
	}
	if err := s.api.NC.Publish(s.inflight.ackSubject(h), body); err != nil {
		s.api.Repeats.Warn(err, "event could not be given back; it comes back when its lease ends").Str("event", h.event.ID).Send()
	}
	s.metrics.ordered(h.event.Kind, lifecycle.Return)
	s.inflight.remove(h)
}
