package consumer

import (
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/events"
)

// StreamResults keeps the results of idempotent workers' events.
const StreamResults = "PINWHEEL_RESULTS"

// resultHeadroom is left of a message for what is added to a stored result.
const resultHeadroom = 1 << 10

// resultsStream has one message for each result. One that is old goes, and so do the oldest of an owner that has more than its share (shared.go): then the
// event would run again. One that does not fit waits until they have.
func resultsStream(cfg Config) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: StreamResults, Description: "Results of idempotent workers", Subjects: []string{cfg.Prefix.AllResults()},
		Retention: jetstream.LimitsPolicy, Storage: jetstream.FileStorage, Replicas: cfg.Replicas, MaxMsgsPerSubject: 1,
		MaxBytes: max(1<<20, cfg.MaxBytes/8), MaxAge: cfg.ResultAge, Discard: jetstream.DiscardNew,
	}
}

// once reports whether an event that has succeeded must not run again.
func (c *Consumer) once(e *events.Event) bool {
	return c.cfg.Idempotent != nil && c.cfg.Idempotent(e.Owner, e.Worker)
}

// recall looks whether h, of an idempotent worker, has succeeded before, in a run of which the ack was lost or as another publish of
// the same id. Then it is answered by what is stored and acked, and not run.
func (c *Consumer) recall(h *held) {
	c.lookUp(StreamResults, c.cfg.Prefix.Result(h.event), func(m *storedMsg, err error) {
		switch {
		case err != nil:
			c.arriveLater(h, err, "it could not be looked up whether an event has a result; trying again", func() { c.recall(h) })
		case m == nil:
			h.tries = nil
			c.arriveKnown(h)
		default:
			c.do(func() { c.recalled(h, m) })
		}
	})
}

// recalled answers h by its stored result. It runs on the settle goroutine.
func (c *Consumer) recalled(h *held, m *storedMsg) {
	if !c.table.move(h, settling, loading) {
		return
	}
	h.tries, h.once = nil, false // nothing new to be stored
	c.metrics.recalled.Inc()
	c.carryOut(h, events.Settlement{
		Event: h.event, Reply: events.DecodeResult(h.event, events.Header(m.Header), m.Data), Outcome: events.Outcome{Verdict: events.Ack},
	})
}

// answers notes a reply that may become a result.
func (h *held) answers(r *events.Reply) {
	if h.once && r != nil {
		h.answer = r
	}
}

// enter submits an event of which all is known. It runs on the settle goroutine.
func (c *Consumer) enter(h *held) {
	if c.draining.Load() {
		if c.table.move(h, settling, loading) {
			c.giveBack([]*held{h})
		}
		return
	}
	if h.event.Halt == nil && h.event.Overlaps() == events.OverlapReplace {
		c.takeOver(h)
		return
	}
	if c.table.move(h, running, loading) {
		h.unspent = ""
		c.dispatcher.Submit([]*events.Event{h.event})
	}
}

// keep stores the result of h, which has succeeded, and then acks it. A result that JetStream refuses is not worth a second
// run now: the event is acked all the same. It runs on the settle goroutine.
func (c *Consumer) keep(h *held) {
	m := resultMessage(c.cfg.Prefix.Result(h.event), h.answer)
	if int64(m.Size()) > c.nc.MaxPayload()-resultHeadroom || !c.fits(m) {
		c.say(h.event, h.answer.Version, fmt.Sprintf("the result has %d bytes and is too large to be kept: whoever asks for it again gets a failure, %s", len(m.Data), events.ReasonTooLarge))
		m = resultMessage(m.Subject, nil)
	}
	h.answer, h.tries = nil, nil
	c.putResult(h, m)
}

func resultMessage(subject string, r *events.Reply) *nats.Msg {
	if r == nil || r.Stream != nil || r.Dropped > 0 {
		return &nats.Msg{Subject: subject, Header: nats.Header(events.EncodeResult(nil))}
	}
	return &nats.Msg{Subject: subject, Header: nats.Header(events.EncodeResult(r)), Data: r.Body}
}

func (c *Consumer) putResult(h *held, m *nats.Msg) {
	c.asker.ask(m, c.answerWait(), time.Now(), func(answer *nats.Msg, err error) {
		err = pubAck(answer, err)
		c.do(func() {
			if err != nil {
				c.noRoom(StreamResults, err)
				c.log.Warn().Err(err).Str("event", h.event.ID).Msg("result of an idempotent worker could not be stored")
				c.recreate()
				if c.again(h, func() { c.putResult(h, m) }) {
					return
				}
			}
			h.tries = nil
			c.grew(c.usage.of(StreamResults), m.Size())
			c.step(StepResultStored)
			c.ackReplay(h, ReplaySucceeded, nil, 0)
		})
	})
}
