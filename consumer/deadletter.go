package consumer

import (
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

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
	e, now := h.event, time.Now()
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
	h.tries = newRetrier(0)
	if c.doubtful(h) {
		c.ifThere(h, func() { c.publishDead(h, d, c.deadMessage(e, d)) })
		return
	}
	c.publishDead(h, d, c.deadMessage(e, d))
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

// deadMessage encodes d so that it fits. The stream of events leaves room for what a dead letter adds; only
// an event of very many headers that must be renamed does not fit, and loses what steered NATS.
func (c *Consumer) deadMessage(e *events.Event, d *events.DeadLetter) *nats.Msg {
	m := &nats.Msg{Subject: c.cfg.Prefix.Dead(e, d.Failure.Reason), Header: nats.Header(d.Encode()), Data: d.Body}
	for _, shrink := range []func(){
		func() { d.Failure.Stack = "" },
		func() { d.History = nil },
		func() { d.Header = userHeader(d.Header) },
		func() { d.Header = nil },
	} {
		if int64(m.Size()) < c.nc.MaxPayload()-256 {
			break
		}
		shrink()
		m.Header = nats.Header(d.Encode())
		c.log.Warn().Str("event", d.EventID).Msg("dead letter is too large for a message; cut")
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
				c.metrics.dead.WithLabelValues(string(d.Failure.Reason)).Inc()
				c.buried(h, d)
			case isWrongLastSequence(err):
				c.checkDead(h, d, m)
			default:
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
			c.endDead(h)
		})
		return
	}
	c.endDead(h)
}

func (c *Consumer) endDead(h *held) {
	h.dead = true
	c.metrics.ended(h.event.Kind, events.Dead)
	c.ack(h)
}

// checkDead looks at the dead letter that stands where d should go. It is d's own, written before
// a crash; or, when the event stream was deleted and counts anew, another's: then d goes on top of it.
func (c *Consumer) checkDead(h *held, d *events.DeadLetter, m *nats.Msg) {
	get := &nats.Msg{Subject: "$JS.API.DIRECT.GET." + StreamDead}
	get.Data = fmt.Appendf(nil, `{"last_by_subj":%q}`, m.Header.Get(headerExpectLastSubjectSubject))
	c.asker.ask(get, c.answerWait(), time.Now(), func(answer *nats.Msg, err error) {
		c.do(func() {
			if err != nil {
				c.after(h.tries, func() { c.checkDead(h, d, m) })
				return
			}
			seq := answer.Header.Get(jetstream.SequenceHeader)
			if seq == "" { // it was, and is not any more
				c.buried(h, d)
				return
			}
			number, _ := strconv.ParseUint(seq, 10, 64)
			old, err := events.DecodeDeadLetter(number, events.Header(answer.Header), answer.Data)
			if err == nil && isLetterOf(old, h.event) {
				c.buried(h, old)
				return
			}
			m.Header.Set(headerExpectLastSubjectSeq, seq)
			c.publishDead(h, d, m)
		})
	})
}
