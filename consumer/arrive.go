package consumer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/events"
)

// arrive finds out what must be known before an event may run that was replayed or delivered before. h is in phase loading.
// A replay must be the only one of its number; a redelivered event must not have its dead letter already; and then its attempts are looked up.
func (c *Consumer) arrive(h *held) {
	if id, nonce, ok := events.ParseReplayMark(h.event.Header.Get(events.HeaderReplay)); ok {
		c.claim(h, id, nonce)
		return
	}
	c.arriveClaimed(h)
}

func (c *Consumer) arriveClaimed(h *held) {
	h.tries = nil
	if h.once {
		c.recall(h)
		return
	}
	c.arriveKnown(h)
}

// arriveKnown goes on with an event of which no earlier result is known.
func (c *Consumer) arriveKnown(h *held) {
	if h.event.Origin.Deliveries > 1 {
		c.exhume(h)
		return
	}
	c.do(func() { c.enter(h) })
}

// isReplay reports whether the event must be claimed before it runs.
func isReplay(e *events.Event) bool { return len(e.Header[events.HeaderReplay]) > 0 }

// claim makes sure that of all publishes of one replay only one is run: the first that comes by here leaves its nonce. Copies of it, delivered
// again or parked meanwhile, bring the same nonce.
func (c *Consumer) claim(h *held, id, nonce string) {
	subject := "$KV." + BucketAttempts + ".replay." + h.event.Owner + "." + id
	m := &nats.Msg{Subject: subject, Header: nats.Header{headerExpectLastSubjectSeq: {"0"}}, Data: []byte(nonce)}
	c.asker.ask(m, c.answerWait(), time.Now(), func(answer *nats.Msg, err error) {
		err = pubAck(answer, err)
		switch {
		case err == nil:
			c.step(StepClaimed)
			c.arriveClaimed(h)
		case isWrongLastSequence(err):
			c.claimed(h, id, nonce, subject)
		default:
			c.arriveLater(h, err, "replay could not be claimed; trying again", func() { c.claim(h, id, nonce) })
		}
	})
}

// claimed looks whose the claim is. A replay that runs elsewhere, or has run, is acked here.
func (c *Consumer) claimed(h *held, id, nonce, subject string) {
	c.lookUp("KV_"+BucketAttempts, subject, func(m *storedMsg, err error) {
		switch {
		case err != nil:
			c.arriveLater(h, err, "claim of a replay could not be read; trying again", func() { c.claimed(h, id, nonce, subject) })
		case m == nil: // gone since
			c.claim(h, id, nonce)
		case string(m.Data) == nonce:
			c.arriveClaimed(h)
		default:
			c.do(func() {
				if c.table.move(h, settling, loading) {
					c.log.Info().Str("event", h.event.ID).Str("worker", h.event.Target()).Msg("replay was published twice; this one is not run")
					c.metrics.replaysDropped.Inc()
					h.tries = nil
					c.ack(h)
				}
			})
		}
	})
}

// exhume looks for the dead letter of an event that was delivered before: the process that had it may have died between the letter and
// the ack. Then the event has ended, and is acked.
func (c *Consumer) exhume(h *held) {
	c.lookUp(StreamDead, c.cfg.Prefix.Dead(h.event, anyReason), func(m *storedMsg, err error) {
		if err != nil {
			c.arriveLater(h, err, "dead letter of a redelivered event could not be looked up; trying again", func() { c.exhume(h) })
			return
		}
		d := m.letter()
		if d == nil || !isLetterOf(d, h.event) || d.At.Before(h.event.Stored) {
			h.tries = nil
			c.load(h)
			return
		}
		c.do(func() {
			if c.table.move(h, settling, loading) {
				c.buried(h, d)
			}
		})
	})
}

// isLetterOf reports whether d is of e, and not of an event that an earlier stream of the same name had under the same number.
func isLetterOf(d *events.DeadLetter, e *events.Event) bool {
	return d.EventID == e.ID && (bytes.Equal(d.Body, e.Body) || !d.Edited.IsZero())
}

func (c *Consumer) arriveLater(h *held, err error, why string, again func()) {
	c.log.Warn().Err(err).Str("event", h.event.ID).Msg(why)
	c.recreate()
	if h.tries == nil {
		h.tries = newRetrier(0)
	}
	c.after(h.tries, again)
}

// storedMsg is a message as a stream's leader tells it.
type storedMsg struct {
	Seq     uint64 `json:"seq"`
	Data    []byte `json:"data"`
	Headers []byte `json:"hdrs"`
}

// header is m's headers.
func (m *storedMsg) header() (nats.Header, error) {
	if len(m.Headers) == 0 {
		return nil, nil
	}
	return nats.DecodeHeadersMsg(m.Headers)
}

// letter is m as a dead letter; nil when there is none.
func (m *storedMsg) letter() *events.DeadLetter {
	if m == nil {
		return nil
	}
	h, err := m.header()
	if err != nil {
		return nil
	}
	d, err := events.DecodeDeadLetter(m.Seq, events.Header(h), m.Data)
	if err != nil {
		return nil
	}
	return d
}

// lookUp gets the last message of a subject, nil when there is none, from the stream's leader: a follower may not know yet.
func (c *Consumer) lookUp(stream, subject string, done func(m *storedMsg, err error)) {
	body, _ := json.Marshal(map[string]string{"last_by_subj": subject}) // two strings cannot fail
	c.lookUpBy(stream, body, done)
}

// lookUpBy is lookUp with the whole request.
func (c *Consumer) lookUpBy(stream string, request []byte, done func(m *storedMsg, err error)) {
	ask := &nats.Msg{Subject: "$JS.API.STREAM.MSG.GET." + stream, Data: request}
	c.asker.ask(ask, c.answerWait(), time.Now(), func(answer *nats.Msg, err error) {
		if err != nil {
			done(nil, err)
			return
		}
		done(parseStored(answer))
	})
}

// parseStored reads the answer to a STREAM.MSG.GET; nil when there is no such message.
func parseStored(answer *nats.Msg) (*storedMsg, error) {
	var a struct {
		Message *storedMsg `json:"message"`
		Error   *apiError  `json:"error"`
	}
	err := json.Unmarshal(answer.Data, &a)
	switch {
	case err != nil:
		return nil, fmt.Errorf("answer about a stored message: %w", err)
	case a.Error != nil && a.Error.ErrCode == int(jetstream.JSErrCodeMessageNotFound):
		return nil, nil
	case a.Error != nil:
		return nil, a.Error
	case a.Message == nil:
		return nil, errors.New("an answer of JetStream has no message")
	}
	return a.Message, nil
}
