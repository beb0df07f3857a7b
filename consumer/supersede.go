package consumer

import (
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/stored"
)

// supersession tells every process that the event of a newer tick is there, of a schedule that replaces.
type supersession struct {
	Owner  string `json:"owner"`
	Worker string `json:"worker"`
	Key    string `json:"key"`
	Tick   int64  `json:"tick"` // milliseconds since the epoch: the events of all ticks before it are to end
}

// errNoEvent is what not even the event finds that looks: the stream was made anew.
var errNoEvent = errors.New("the event is not in the stream any more")

// supersedeAgain is how often the event of a newer tick looks whether those before it have ended.
const supersedeAgain = 100 * time.Millisecond

func (c *Consumer) supersedeSubject() string { return string(c.cfg.Prefix) + ".control.supersede" }

// openSupersede listens for supersessions.
func (c *Consumer) openSupersede() (*nats.Subscription, error) {
	return c.nc.Subscribe(c.supersedeSubject(), func(m *nats.Msg) {
		var s supersession
		if json.Unmarshal(m.Data, &s) == nil && s.Key != "" {
			c.do(func() { c.superseded(s) })
		}
	})
}

// takeOver lets h, the event of a tick of a schedule that replaces, run when those of all ticks before it have ended, whom it
// tells to. If a newer one is there, h itself ends. h is in phase loading. It runs on the settle goroutine.
func (c *Consumer) takeOver(h *held) {
	e := h.event
	filter := c.cfg.Prefix.Anywhere(e)
	c.ends(filter, func(first, last *storedMsg, err error) {
		switch {
		case errors.Is(err, errNoEvent):
			c.do(func() { c.takenOver(h) })
		case err != nil:
			c.arriveLater(h, err, "other ticks of a schedule could not be looked up; trying again", func() { c.takeOver(h) })
		case first.tick() > e.ScheduledTime, last.tick() > e.ScheduledTime:
			c.do(func() {
				if c.table.move(h, settling, loading) {
					c.endSuperseded(h)
				}
			})
		case first.Sequence < e.Origin.Seq, last.Sequence > e.Origin.Seq: // which had waited for a retry, and came after us
			body, _ := json.Marshal(supersession{e.Owner, e.Worker, e.Key, e.ScheduledTime}) // strings and a number cannot fail
			_ = c.nc.Publish(c.supersedeSubject(), body)                                     // not connected: told again
			c.doIn(supersedeAgain, func() { c.takeOver(h) })
		default:
			c.do(func() { c.takenOver(h) })
		}
	})
}

// takenOver lets h run, until it is halted.
func (c *Consumer) takenOver(h *held) {
	h.tries, h.event.Halt = nil, &events.Signal{}
	c.enter(h)
}

// tick is the time of the tick whose event m is, in milliseconds since the epoch.
func (m *storedMsg) tick() int64 {
	tick, err := strconv.ParseInt(m.Header.Get(events.HeaderScheduledTime), 10, 64)
	if err != nil {
		return 0
	}
	return tick
}

// ends looks up the first and the last message of a filter, of which there is at least one.
func (c *Consumer) ends(filter string, done func(first, last *storedMsg, err error)) {
	c.lookUp(StreamSchedules, filter, func(last *storedMsg, err error) {
		if err == nil && last == nil {
			err = errNoEvent
		}
		if err != nil {
			done(nil, nil, err)
			return
		}
		c.lookUpBy(StreamSchedules, stored.Request{Seq: 1, Next: filter}, func(first *storedMsg, err error) {
			if err == nil && first == nil { // it has gone meanwhile
				first = last
			}
			done(first, last, err)
		})
	})
}

// superseded ends what this process holds of the ticks before: what waits at once, what runs as soon as it can be interrupted. It runs on
// the settle goroutine.
func (c *Consumer) superseded(s supersession) {
	older := func(h *held) bool {
		e := h.event
		return e.Key == s.Key && e.Owner == s.Owner && e.Worker == s.Worker && h.from.stream == StreamSchedules && e.ScheduledTime < s.Tick
	}
	for _, h := range c.table.in(waiting) {
		if older(h) && c.table.move(h, settling, waiting) {
			c.retries.drop(h)
			c.endSuperseded(h)
		}
	}
	for _, h := range c.table.in(running) {
		if older(h) && h.event.Halt != nil {
			h.superseded = true
			h.event.Halt.Fire()
		}
	}
}

// endSuperseded acks an event that a newer tick replaces. Nobody is told, and it is no failure.
func (c *Consumer) endSuperseded(h *held) {
	c.log.Info().Str("event", h.event.ID).Str("worker", h.event.Target()).Msg("event is ended: the schedule's next tick replaces it")
	h.tries = nil
	c.ack(h)
	c.metrics.ended(h.event.Kind, events.Ack)
}
