package consumer

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/assets"
)

// replayEnd is how a replay ended. It is stored behind the nonce of the replay's claim, before the event's ack.
type replayEnd struct {
	State   ReplayState   `json:"state"`
	At      time.Time     `json:"at"`
	Reason  events.Reason `json:"reason,omitempty"`
	Message string        `json:"message,omitempty"`
	Letter  uint64        `json:"letter,omitempty"` // the new one's number
}

// endMessage is how much of a failure's message is kept with the end of a replay, in bytes.
const endMessage = 256

func newReplayEnd(state ReplayState, f *events.Failure, letter uint64, at time.Time) replayEnd {
	e := replayEnd{State: state, At: at.UTC(), Letter: letter}
	if f != nil {
		e.Reason, e.Message = f.Reason, strings.ToValidUTF8(f.Message[:min(len(f.Message), endMessage)], "")
	}
	return e
}

// parseClaim reads a claim: its nonce and, when the replay has ended, how.
func parseClaim(data []byte) (nonce string, end *replayEnd) {
	nonce, text, ended := strings.Cut(string(data), " ")
	if !ended {
		return nonce, nil
	}
	end = &replayEnd{}
	if err := json.Unmarshal([]byte(text), end); err != nil || end.State == "" {
		return nonce, nil
	}
	return nonce, end
}

// ackReplay acks h, which ends so; of a replay it is stored before how it ended. Of one for which there is no room that is not known, and it is acked
// all the same. It runs on the settle goroutine.
func (c *Consumer) ackReplay(h *held, state ReplayState, f *events.Failure, letter uint64) {
	if !isReplay(h.event) {
		c.ack(h)
		return
	}
	id, nonce, ok := events.ParseReplayMark(h.event.Header.Get(events.HeaderReplay))
	if !ok {
		c.ack(h)
		return
	}
	if h.superseded {
		state, f = ReplayFailed, events.Fail(events.ReasonUnavailable, "the schedule's next tick replaced it")
	}
	text, err := json.Marshal(newReplayEnd(state, f, letter, c.clock.now()))
	if err != nil {
		c.log.Error().Err(err).Msg("end of a replay cannot be encoded")
		c.ack(h)
		return
	}
	h.tries = nil
	c.putReplayEnd(h, &nats.Msg{Subject: claimSubject(h.event.Owner, id), Data: append([]byte(nonce+" "), text...)})
}

func (c *Consumer) putReplayEnd(h *held, m *nats.Msg) {
	c.asker.ask(m, c.answerWait(), time.Now(), func(answer *nats.Msg, err error) {
		err = pubAck(answer, err)
		c.do(func() {
			if err != nil {
				c.noRoom(assets.BucketStream(BucketAttempts), err)
				c.log.Warn().Err(err).Str("event", h.event.ID).Str("worker", h.event.Target()).Msg("how a replay ended could not be stored")
				if c.again(h, func() { c.putReplayEnd(h, m) }) {
					return
				}
			}
			h.tries = nil
			c.step(StepEndStored)
			c.ack(h)
		})
	})
}
