package consumer

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/events"
)

// Headers by which a publisher makes JetStream check before it stores: the last sequence of the subjects that a filter
// matches, here all that the event's dead letter could have, whatever its reason.
const (
	headerExpectLastSubjectSeq     = "Nats-Expected-Last-Subject-Sequence"
	headerExpectLastSubjectSubject = "Nats-Expected-Last-Subject-Sequence-Subject"
)

// bury writes the dead letter of h and then acks h. Its subject is its own, and the stream is asked to store it
// only if there is none of this event yet, for any reason: so a crash in between cannot make a second one.
// It tries until it succeeds; the lease is renewed meanwhile. It runs on the settle goroutine.
func (c *Consumer) bury(h *held, o events.Outcome) {
	e, now := h.event, c.clock.now()
	attempts := e.Attempt
	if o.Version == "" { // nothing ran this time
		attempts--
	}
	d := events.NewDeadLetter(e, o.Failure, o.Version, c.cfg.Node, attempts, now)
	if h.record != nil && !h.record.FirstAt.IsZero() {
		d.FirstAt = h.record.FirstAt
	} else if attempts > 0 {
		d.FirstAt = now
	}
	d.History = c.history(h, o, attempts, now)
	if o.OnDead != nil && e.Header.Get(events.HeaderDeadOf) == "" { // else letters of letters would go on for ever
		d.Hook = *o.OnDead
	}
	m := c.deadMessage(e, d)
	if m == nil {
		c.cannotBury(h)
		return
	}
	h.tries = newRetrier(0)
	if c.doubtful(h) {
		c.ifThere(h, func() { c.publishDead(h, d, m) })
		return
	}
	c.publishDead(h, d, m)
}

// buriedAgain is how long an event stays in its stream for whose letter a message has no room.
const buriedAgain = time.Minute

// cannotBury gives back an event whose body alone is as large as a message may be: the server's max_payload was larger when it was stored. It is not
// lost, and comes again after a while, in case that was a mistake.
func (c *Consumer) cannotBury(h *held) {
	c.log.Error().Str("event", h.event.ID).Str("worker", h.event.Target()).Int("bytes", len(h.event.Body)).Int64("max_payload", c.nc.MaxPayload()).
		Msg("dead letter fits no message: the event stays where it is, and runs again; raise max_payload of nats-server")
	if h.record == nil {
		h.record = &record{}
	}
	h.rest()
	h.record.Returned++
	c.store(h, func() { c.nakWith(h, fmt.Appendf(nil, `%s {"delay":%d}`, nakBody, buriedAgain.Nanoseconds())) })
}

// history is the runs of h that failed, with the one that has just ended if there was one.
func (c *Consumer) history(h *held, o events.Outcome, attempts int, now time.Time) []events.FailedRun {
	var runs []events.FailedRun
	if h.record != nil {
		for _, f := range h.record.History {
			runs = append(runs, events.FailedRun{At: f.At, Attempt: f.Attempt, Reason: f.Reason, Message: f.Message, Node: f.Node})
		}
	}
	if o.Version != "" {
		runs = append(runs, events.FailedRun{At: now, Attempt: attempts, Reason: o.Failure.Reason, Message: o.Failure.Message, Node: c.cfg.Node})
	}
	return runs[max(0, len(runs)-events.MaxHistory):]
}

// deadMessage encodes d so that it fits. The stream of events leaves room in a message for what a dead letter adds, but not in its headers: an event
// of very many, or large ones, loses those of the letter that only tell more, then what steered NATS, and at last its own. nil: not even its body fits.
func (c *Consumer) deadMessage(e *events.Event, d *events.DeadLetter) *nats.Msg {
	m := &nats.Msg{Subject: c.cfg.Prefix.Dead(e, d.Failure.Reason), Header: nats.Header(d.Encode()), Data: d.Body}
	for _, shrink := range []func(){
		func() { d.Failure.Stack = "" },
		func() { d.History = nil },
		func() { d.Header = userHeader(d.Header) },
		func() { d.Header = nil },
		func() {
			d.Failure.Message = strings.ToValidUTF8(d.Failure.Message[:min(len(d.Failure.Message), carriedMessage)], "")
		},
	} {
		if c.fits(m) {
			break
		}
		shrink()
		m.Header = nats.Header(d.Encode())
		c.log.Warn().Str("event", d.EventID).Msg("dead letter is too large for a message; cut")
	}
	if !c.fits(m) {
		return nil
	}
	m.Header.Set(headerExpectLastSubjectSeq, "0")
	m.Header.Set(headerExpectLastSubjectSubject, c.cfg.Prefix.Dead(e, anyReason))
	return m
}

// userHeader is the headers that neither steer NATS nor look like those of a dead letter.
func userHeader(h events.Header) events.Header {
	user := make(events.Header, len(h))
	(&events.Event{Header: h}).UserHeaders(func(name, value string) { user[name] = append(user[name], value) })
	return user
}

func (c *Consumer) publishDead(h *held, d *events.DeadLetter, m *nats.Msg) {
	c.asker.ask(m, c.answerWait(), time.Now(), func(answer *nats.Msg, err error) {
		err = pubAck(answer, err)
		c.do(func() {
			switch {
			case err == nil:
				d.Seq = pubSeq(answer)
				c.grew(c.usage.of(StreamDead), m.Size())
				c.metrics.dead.WithLabelValues(string(d.Failure.Reason)).Inc()
				c.buried(h, d)
			case isWrongLastSequence(err):
				c.checkDead(h, d, m)
			default:
				c.noRoom(StreamDead, err)
				c.log.Warn().Err(err).Str("event", d.EventID).Str("worker", h.event.Target()).Msg("dead letter could not be written; trying again")
				c.recreate()
				c.after(h.tries, func() { c.publishDead(h, d, m) })
			}
		})
	})
}

// anyReason stands for every reason in a subject filter.
const anyReason events.Reason = "*"

// buried ends h, whose dead letter d is stored: whoever wants to know is told, and then h is acked.
func (c *Consumer) buried(h *held, d *events.DeadLetter) {
	c.step(StepDeadStored)
	h.tries = nil
	if d.Hook != (events.DeadHook{}) {
		c.tell(h, d, func() {
			c.step(StepDeadTold)
			c.endDead(h, d)
		})
		return
	}
	c.endDead(h, d)
}

func (c *Consumer) endDead(h *held, d *events.DeadLetter) {
	h.dead = true
	c.metrics.ended(h.event.Kind, events.Dead)
	c.ackReplay(h, ReplayDead, &d.Failure, d.Seq)
}

// checkDead looks at the dead letter that stands where d should go. It is d's own, written before
// a crash; or, when the event stream was deleted and counts anew, another's: then d goes on top of it.
func (c *Consumer) checkDead(h *held, d *events.DeadLetter, m *nats.Msg) {
	c.lookUp(StreamDead, m.Header.Get(headerExpectLastSubjectSubject), func(there *storedMsg, err error) {
		c.do(func() {
			if err != nil {
				c.after(h.tries, func() { c.checkDead(h, d, m) })
				return
			}
			if there == nil { // it was, and is not any more
				c.buried(h, d)
				return
			}
			if old := there.letterOf(h.event); old != nil {
				c.buried(h, old)
				return
			}
			m.Header.Set(headerExpectLastSubjectSeq, strconv.FormatUint(there.Sequence, 10))
			c.publishDead(h, d, m)
		})
	})
}
