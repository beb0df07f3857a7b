package consumer

import (
	"errors"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
)

// What a message to an ack subject says. An empty one acks.
var (
	nakBody      = []byte("-NAK")
	progressBody = []byte("+WPI")
)

// group is acks of one source that are confirmed together: the server works through the acks of one
// connection to one consumer in order, so its confirmation of the last stands for all.
// That holds only within one connection and one life of the consumer; see confirmed and sendAcks.
type group struct {
	events     []*held
	reconnects uint64 // of the connection when it was sent
	tries      *retrier
}

// ack queues the ack of h; sendAcks sends it. It runs on the settle goroutine.
func (c *Consumer) ack(h *held) {
	if h.lapsed {
		return
	}
	h.ended = true
	h.from.flow.ended(h.brief)
	c.queueAck(h)
}

func (c *Consumer) queueAck(h *held) {
	if len(h.from.acks) == 0 {
		c.acking = append(c.acking, h.from)
	}
	h.from.acks = append(h.from.acks, h)
}

// sendAcks sends what ack has queued.
func (c *Consumer) sendAcks() {
	for _, s := range c.acking {
		g := &group{events: make([]*held, 0, len(s.acks))}
		epoch := s.epoch.Load()
		for _, h := range s.acks {
			switch {
			case h.lapsed: // since it was queued
			case h.epoch == epoch: // settle goroutine and adopt could race here: harmless, both ways are right
				g.events = append(g.events, h)
			case c.table.unsure(h):
				c.doIn(lifeWait, func() { c.queueAck(h) })
			default:
				c.sendGroup(&group{events: []*held{h}})
			}
		}
		if len(g.events) > 0 {
			c.sendGroup(g)
		}
		clear(s.acks)
		s.acks = s.acks[:0]
	}
	c.acking = c.acking[:0]
}

// sendGroup sends the acks of a group, the last of them as a question.
func (c *Consumer) sendGroup(g *group) {
	g.reconnects = c.nc.Stats().Reconnects
	c.sayAgain(g)
	last := len(g.events) - 1
	subjects := c.ackSubjects(g.events)
	for _, subject := range subjects[:last] {
		if err := c.nc.Publish(subject, nil); err != nil {
			c.unconfirmed(g)
			return
		}
	}
	c.metrics.acks.Add(float64(len(g.events)))
	c.asker.ask(&nats.Msg{Subject: subjects[last]}, c.answerWait(), time.Now(), func(_ *nats.Msg, err error) {
		c.confirmed(g, err)
	})
	c.step(StepAcked)
}

// sayAgain publishes the replies that went out on an earlier connection: what it had in its buffers is lost, and
// publishers tell doubles by their id.
func (c *Consumer) sayAgain(g *group) {
	for _, h := range g.events {
		if h.reply != nil && h.said != g.reconnects {
			h.said = g.reconnects
			_ = c.nc.PublishMsg(c.replies.message(h.event, h.reply)) // the connection has just gone again: then the ack is not confirmed, too
		}
	}
}

// ackSubjects are the ack subjects of events. The slice is scratch of the settle goroutine.
func (c *Consumer) ackSubjects(batch []*held) []string {
	c.subjects = c.subjects[:0]
	c.table.mu.Lock()
	for _, h := range batch {
		c.subjects = append(c.subjects, h.ack)
	}
	c.table.mu.Unlock()
	return c.subjects
}

// answerWait is how long the server may take to answer before it is asked again.
func (c *Consumer) answerWait() time.Duration { return min(c.cfg.AckWait/3, 5*time.Second) }

// confirmed ends the events of a group whose acks the server has worked through.
func (c *Consumer) confirmed(g *group, err error) {
	if err != nil || c.nc.Stats().Reconnects != g.reconnects {
		if errors.Is(err, nats.ErrNoResponders) { // the consumer is not there any more
			c.recreate()
		}
		c.do(func() { c.unconfirmed(g) })
		return
	}
	c.step(StepConfirmed)
	for _, h := range g.events {
		if h.record != nil && c.table.holds(h) {
			c.forget(h)
		}
		if !h.dead { // a replay wants its body
			c.dropParts(h.event)
		}
	}
	if g.tries != nil {
		now := time.Now()
		c.table.remember(g.events, now, now.Add(c.cfg.AckWait))
	}
	c.table.confirmed(g.events)
}

// unconfirmed sends a group again, after a while, until the leases are over, and with it the replies.
func (c *Consumer) unconfirmed(g *group) {
	if g.tries == nil {
		g.tries = newRetrier(c.cfg.AckWait)
	}
	if c.after(g.tries, func() { c.resend(g) }) {
		return
	}
	for _, h := range g.events {
		if !h.lapsed {
			c.letGo(h)
		}
	}
}

func (c *Consumer) resend(g *group) {
	if !c.nc.IsConnected() {
		c.unconfirmed(g)
		return
	}
	c.metrics.ackRetries.Inc()
	g.events = slices.DeleteFunc(g.events, func(h *held) bool { return h.lapsed })
	if len(g.events) == 1 {
		c.sendGroup(g)
		return
	}
	// One by one: an ack that the server refuses must not hold up the others.
	for _, h := range g.events {
		c.sendGroup(&group{events: []*held{h}, tries: g.tries})
	}
}
