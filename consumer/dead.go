package consumer

import (
	"maps"
	"time"

	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/consumer/jsapi"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/lib/stored"
)

// unfitAgain is how long an event whose dead letter fits no message stays in its stream.
const unfitAgain = time.Minute

// keepBlock keeps the event's header block in its letter: the bytes of m, the event's message, unless that is a parked
// or delayed event, whose headers nats.go could read.
func keepBlock(d *events.DeadLetter, h *entry, m *stored.Message) {
	if h.event.HeadersLost() || h.from.stream == events.StreamEvents {
		d.KeepBlock(m.Block)
	} else {
		d.KeepBlock(h.event.Header.Block())
	}
}

// ifStillStored calls then with the message of h if the stream still has it. Otherwise h has ended elsewhere and was
// acked, and ifStillStored forgets it and calls gone: an acked event must not become a dead letter too.
func (s *finisher) ifStillStored(h *entry, tries *jsapi.Retrier, then func(*stored.Message), gone func()) {
	if !h.here() {
		gone()
		return
	}
	s.api.Get(h.from.stream, stored.Request{Seq: h.event.Origin.Seq}, func(m *stored.Message, err error) {
		switch {
		case err != nil:
			s.api.Repeats.Warn(err, "check whether an event has ended elsewhere failed; retrying").Str("event", h.event.ID).Send()
			s.api.Retry(tries, func() { s.ifStillStored(h, tries, then, gone) })
		case m != nil && m.Time.Equal(h.stored): // otherwise it is an event of a stream that was created again
			then(m)
		default:
			s.log.Info().Str("event", h.event.ID).Str("worker", h.event.Target()).Msg("event failed for good, but has ended elsewhere meanwhile; no dead letter")
			s.inflight.remove(h)
			gone()
		}
	})
}

// letter is the dead letter of h.
func (s *finisher) letter(h *entry, o lifecycle.Outcome) *events.DeadLetter {
	e, now := &h.event, s.clock.Now()
	runs := e.Attempt
	if o.Version == "" { // nothing ran this time
		runs--
	}
	d := events.NewDeadLetter(&e.Event, o.Failure, o.Version, s.cfg.Node, runs, now)
	if e.Trace != nil { // so that a replay belongs to the same trace
		h := events.Header{}
		maps.Copy(h, d.Header) // it is the event's
		e.Trace.SetIn(h)
		d.Header = h
	}
	if h.record != nil && !h.record.FirstAt.IsZero() {
		d.FirstAt = h.record.FirstAt
	} else if runs > 0 {
		d.FirstAt = now
	}
	if h.record != nil {
		d.History = append(d.History, h.record.History...)
	}
	if o.Version != "" {
		d.History = append(d.History, events.FailedRun{At: now, Attempt: runs, Reason: o.Failure.Reason,
			Message: o.Failure.Message, Node: s.cfg.Node})
	}
	d.History = d.History[max(0, len(d.History)-events.MaxHistory):]
	if o.OnDead != nil && e.Header.Get(events.HeaderDeadOf) == "" { // otherwise notices of notices would never end
		d.Hook = *o.OnDead
	}
	return d
}

// mayHaveMoved reports whether h may have been delivered to another process meanwhile and have ended there: because h
// was delivered before, or because its lease was not renewed for nearly as long as the lease lasts.
func (s *finisher) mayHaveMoved(h *entry) bool {
	return h.event.Origin.Deliveries > 1 || h.absences != s.absences.Load() ||
		time.Since(s.inflight.renewedAt(h)) > s.cfg.longAbsence()
}

// die queues the dead letter of h. Letters are written in rounds, in which the owners take turns.
func (s *settler) die(h *entry, o lifecycle.Outcome) {
	s.inflight.move(h, storing)
	d := s.letter(h, o)
	s.inflight.queueLetter(h, s.cfg.mostOutside())
	s.letterRounds.Add(h.event.Owner, func(answered func()) {
		waits := true
		s.writeLetter(h, d, func() {
			if waits {
				waits = false
				answered()
			}
		})
	})
}

// writeLetter writes d, the dead letter of h, unless h has ended elsewhere. It calls answered, more than once perhaps,
// when JetStream has answered or nothing is written.
func (s *settler) writeLetter(h *entry, d *events.DeadLetter, answered func()) {
	if !s.inflight.writesLetter(h) {
		answered()
		return
	}
	goOn := func() bool { // the first try has failed
		answered()
		return h.here()
	}
	unwritable := h.event.HeadersLost() || h.event.Header.CheckWritable() != nil
	write := func(m *stored.Message) {
		if unwritable {
			keepBlock(d, h, m)
		}
		s.letters.Write(&h.event.Event, d, goOn, func(written *events.DeadLetter, err error) {
			answered()
			if err != nil {
				s.cannotStoreLetter(h)
				return
			}
			s.deadLetterStored(h, written)
		})
	}
	if unwritable || s.mayHaveMoved(h) {
		s.ifStillStored(h, jsapi.NewRetrier(0), write, answered)
		return
	}
	write(nil)
}

// cannotStoreLetter gives back an event whose body alone is as large as a message may be: the server's max_payload was
// larger when the event was stored. It is redelivered after a while, in case the smaller max_payload was a mistake.
func (s *settler) cannotStoreLetter(h *entry) {
	s.api.Repeats.Error(nil, "dead letter fits no message: the event stays where it is, and runs again; raise max_payload of nats-server").
		Str("event", h.event.ID).Str("worker", h.event.Target()).Int("bytes", len(h.event.Body)).
		Int64("max_payload", s.api.NC.MaxPayload()).Send()
	h.noteReturned()
	s.save(h, func() { s.nakFor(h, unfitAgain) })
}

// deadLetterStored ends h, whose dead letter is d: its notice is published, and then h is acked.
func (s *finisher) deadLetterStored(h *entry, d *events.DeadLetter) {
	s.step(StepDeadStored)
	if d.Hook == (events.DeadHook{}) {
		s.endDead(h, d)
		return
	}
	s.notifier.Notify(d, func() {
		s.step(StepDeadNotified)
		s.endDead(h, d)
	})
}

// endFound ends a redelivered event whose dead letter was found.
func (s *finisher) endFound(h *entry, d *events.DeadLetter) {
	s.inflight.move(h, storing)
	s.deadLetterStored(h, d)
}

func (s *finisher) endDead(h *entry, d *events.DeadLetter) {
	h.dead = true
	s.metrics.ended(h.event.Kind, lifecycle.Dead)
	s.end(h, deadletter.ReplayDead, &d.Failure, d.Seq)
}
