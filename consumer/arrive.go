package consumer

import (
	"bytes"
	"encoding/json"
	"errors"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/assets"
	"github.com/pinwheel-run/pinwheel/internal/stored"
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
	subject := claimSubject(h.event.Owner, id)
	m := &nats.Msg{Subject: subject, Header: nats.Header{headerExpectLastSubjectSeq: {"0"}}, Data: []byte(nonce)}
	c.asker.ask(m, c.answerWait(), time.Now(), func(answer *nats.Msg, err error) {
		err = pubAck(answer, err)
		switch {
		case err == nil:
			c.step(StepClaimed)
			c.claimMade(h.event.Owner)
			c.arriveClaimed(h)
		case isWrongLastSequence(err):
			c.claimed(h, id, nonce, subject)
		default:
			c.noRoom(assets.BucketStream(BucketAttempts), err)
			c.arriveLater(h, err, "replay could not be claimed; trying again", func() { c.claim(h, id, nonce) })
		}
	})
}

// claimed looks whose the claim is. A replay that runs elsewhere, or has run, is acked here.
func (c *Consumer) claimed(h *held, id, nonce, subject string) {
	c.lookUp(assets.BucketStream(BucketAttempts), subject, func(m *storedMsg, err error) {
		switch {
		case err != nil:
			c.arriveLater(h, err, "claim of a replay could not be read; trying again", func() { c.claimed(h, id, nonce, subject) })
		case m == nil: // gone since
			c.claim(h, id, nonce)
		default:
			c.claimedBefore(h, nonce, m)
		}
	})
}

// claimedBefore goes on with a replay whose claim is there: it runs, unless the claim is another's, or says that the replay has ended.
func (c *Consumer) claimedBefore(h *held, nonce string, m *storedMsg) {
	by, end := parseClaim(m.Data)
	if by == nonce && end == nil {
		c.arriveClaimed(h)
		return
	}
	c.do(func() {
		if !c.table.move(h, settling, loading) {
			return
		}
		h.tries = nil
		if by == nonce {
			c.log.Info().Str("event", h.event.ID).Str("worker", h.event.Target()).Msg("replay has ended before, and its ack was lost; it is not run again")
		} else {
			c.log.Info().Str("event", h.event.ID).Str("worker", h.event.Target()).Msg("replay was published twice; this one is not run")
			c.metrics.replaysDropped.Inc()
		}
		c.ack(h)
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
		d := m.letterOf(h.event)
		if d == nil {
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

func (c *Consumer) arriveLater(h *held, err error, why string, again func()) {
	c.log.Warn().Err(err).Str("event", h.event.ID).Msg(why)
	c.recreate()
	if h.tries == nil {
		h.tries = newRetrier(0)
	}
	c.after(h.tries, again)
}

// storedMsg is a message as a stream's leader tells it.
type storedMsg stored.Message

// letterOf is m as the dead letter of e; nil when it is none, or that of an event that an earlier stream of the same name had under the same
// number. Letters of earlier binaries do not say when their event was stored. Such a one is not older than its event, by the clock that has
// told both times: that of the server.
func (m *storedMsg) letterOf(e *events.Event) *events.DeadLetter {
	if m == nil {
		return nil
	}
	d, err := events.DecodeDeadLetter(m.Sequence, events.Header(m.Header), m.Data)
	switch {
	case err != nil || d.EventID != e.ID:
		return nil
	case !d.Stored.IsZero():
		if !d.Stored.Equal(e.Stored) {
			return nil
		}
	case m.Time.Before(e.Stored), d.Edited.IsZero() && !bytes.Equal(d.Body, e.Body):
		return nil
	}
	return d
}

// lookUp gets the last message of a subject, nil when there is none, from the stream's leader: a follower may not know yet.
func (c *Consumer) lookUp(stream, subject string, done func(m *storedMsg, err error)) {
	c.lookUpBy(stream, stored.Request{Last: subject}, done)
}

// lookUpBy is lookUp with the whole request.
func (c *Consumer) lookUpBy(stream string, r stored.Request, done func(m *storedMsg, err error)) {
	request, _ := json.Marshal(r) // strings and a number cannot fail
	ask := &nats.Msg{Subject: stored.Subject(stream), Data: request}
	c.asker.ask(ask, c.answerWait(), time.Now(), func(answer *nats.Msg, err error) {
		if err != nil {
			done(nil, err)
			return
		}
		done(parseStored(answer))
	})
}

// parseStored reads the answer to a request for a stored message; nil when there is none.
func parseStored(answer *nats.Msg) (*storedMsg, error) {
	m, err := stored.Parse(answer.Data)
	if errors.Is(err, stored.ErrNone) {
		return nil, nil
	}
	return (*storedMsg)(m), err
}
