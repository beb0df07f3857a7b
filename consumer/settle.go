package consumer

import (
	"context"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/pinwheel-run/pinwheel/events"
)

// inbox is what the settle goroutine has to do.
type inbox struct {
	mu      sync.Mutex
	settled []events.Settlement
	tasks   []func()
	wake    chan struct{}
}

func (q *inbox) signal() {
	signal(q.wake)
}

// Settle carries out settlements: publishes replies, then acts on the outcomes. It may be called from
// any goroutine, copies the batch, and does not touch the network. Order within a batch is kept.
func (c *Consumer) Settle(batch []events.Settlement) {
	c.inbox.mu.Lock()
	c.inbox.settled = append(c.inbox.settled, batch...)
	c.inbox.mu.Unlock()
	c.inbox.signal()
}

// do runs f on the settle goroutine.
func (c *Consumer) do(f func()) {
	c.inbox.mu.Lock()
	c.inbox.tasks = append(c.inbox.tasks, f)
	c.inbox.mu.Unlock()
	c.inbox.signal()
}

// doIn runs f on the settle goroutine after a while.
func (c *Consumer) doIn(wait time.Duration, f func()) {
	time.AfterFunc(wait, func() { c.do(f) })
}

// settleTick is how often questions are checked for being late.
const settleTick = 50 * time.Millisecond

// settleLoop is the settle goroutine.
func (c *Consumer) settleLoop(life context.Context) {
	tick := time.NewTicker(settleTick)
	defer tick.Stop()
	var settled []events.Settlement
	var tasks []func()
	for {
		select {
		case <-life.Done():
			return
		case <-c.inbox.wake:
		case now := <-tick.C:
			c.asker.expire(now)
			c.bodies.tick(now)
			c.parkRound(now)
		}
		c.inbox.mu.Lock()
		tasks, c.inbox.tasks = c.inbox.tasks, tasks[:0]
		// Without a connection a reply could be lost in a dead socket's buffer; settlements wait.
		if c.nc.IsConnected() {
			settled, c.inbox.settled = c.inbox.settled, settled[:0]
		}
		c.inbox.mu.Unlock()
		c.reconnects = c.nc.Stats().Reconnects
		for _, f := range tasks {
			f()
		}
		for i := range settled {
			c.settleOne(settled[i])
		}
		c.sendAcks()
		clear(tasks)
		clear(settled)
		tasks, settled = tasks[:0], settled[:0]
	}
}

// settleOne carries out a settlement that came from dispatch.
func (c *Consumer) settleOne(s events.Settlement) {
	h, ok := s.Event.Held.(*held)
	if !ok {
		c.log.Error().Str("event", s.Event.ID).Msg("settlement of an event that was never submitted; ignored")
		return
	}
	if h.lapsed {
		c.settleLapsed(s)
		return
	}
	if s.Outcome.Verdict == events.None {
		h.answers(s.Reply)
		if s.Reply != nil && s.Event.ReplyTo != "" {
			if r, err := c.answer(s.Event, s.Reply); err != nil {
				c.settleLater(s, err)
			} else if s.Reply.Stream == nil {
				h.reply, h.said = r, c.reconnects
			}
		}
		return
	}
	if s.Outcome.Verdict == events.Share {
		c.share(h)
		return
	}
	if !c.table.move(h, settling, running) {
		c.log.Error().Str("event", s.Event.ID).Str("worker", s.Event.Target()).Stringer("verdict", s.Outcome.Verdict).
			Msg("second final settlement of an event; ignored")
		return
	}
	if h.superseded { // however its run ended: it is not wanted any more
		c.notParked(s)
		s.Reply, s.Outcome = nil, events.Outcome{Verdict: events.Ack, Version: s.Outcome.Version}
	}
	c.carryOut(h, s)
}

// settleLapsed is for an event whose stream was deleted: nothing is said of it to anybody.
func (c *Consumer) settleLapsed(s events.Settlement) {
	if s.Outcome.Verdict != events.None && s.Outcome.Verdict != events.Share {
		c.notParked(s)
	}
	if s.Reply != nil && s.Reply.Stream != nil {
		s.Reply.Stream.Cancel("the event's stream was deleted")
	}
}

// notParked counts an event that was to be parked, and will not be: dispatch has counted it.
func (c *Consumer) notParked(s events.Settlement) {
	if s.Outcome.Verdict == events.Park {
		c.parking.opened(s.Event)
		c.parking.closed(s.Event, 0)
	}
}

// settleLater settles again when s could not be replied. A closure in settleOne would cost every event.
func (c *Consumer) settleLater(s events.Settlement, err error) {
	c.log.Warn().Err(err).Str("event", s.Event.ID).Msg("reply could not be published; trying again")
	c.after(newRetrier(c.cfg.AckWait), func() { c.settleOne(s) })
}

// carryOut is the one place where an event is replied to and ended. h is in phase settling. It
// runs on the settle goroutine.
func (c *Consumer) carryOut(h *held, s events.Settlement) {
	if h.lapsed { // since it was tried first
		c.settleLapsed(s)
		return
	}
	h.answers(s.Reply)
	h.brief = s.Brief
	if s.Reply != nil && s.Event.ReplyTo != "" {
		r, err := c.answer(s.Event, s.Reply)
		if err != nil {
			c.carryOutLater(h, s, err)
			return
		}
		h.reply, h.said, h.tries = r, c.reconnects, nil
		c.step(StepReplied)
	}
	if s.Event.Watched && c.unwatch(h, s) {
		return
	}
	c.lastWord(s.Event, s.Outcome)
	switch s.Outcome.Verdict {
	case events.Ack:
		if h.once && s.Outcome.Failure == nil {
			c.keep(h)
		} else if s.Outcome.Failure != nil {
			c.ackReplay(h, ReplayFailed, s.Outcome.Failure, 0)
		} else {
			c.ackReplay(h, ReplaySucceeded, nil, 0)
		}
		c.metrics.ended(s.Event.Kind, events.Ack)
	case events.Dead:
		c.bury(h, s.Outcome)
	case events.Retry:
		c.postpone(h, s.Outcome)
	case events.Return:
		c.giveBack([]*held{h})
	case events.Park:
		c.park(h)
	case events.Watch:
		c.watch(h, s.Outcome.Alone)
	case events.None, events.Share: // settleOne has dealt with them
	}
}

// answer publishes the reply to e, and tells its worker's author when it had to be replaced. It runs on the settle goroutine.
func (c *Consumer) answer(e *events.Event, reply *events.Reply) (*events.Reply, error) {
	r, err := c.publishReply(&c.replies, e, reply)
	if err == nil && r != reply {
		c.tooLarge(e, r)
	}
	return r, err
}

// carryOutLater tries again when h could not be replied to.
func (c *Consumer) carryOutLater(h *held, s events.Settlement, err error) {
	c.log.Warn().Err(err).Str("event", s.Event.ID).Msg("reply could not be published; trying again")
	if !c.again(h, func() { c.carryOut(h, s) }) {
		c.letGo(h)
	}
}

// giveBack returns events to the stream at once: what was not run is no attempt. The record of
// that is stored before the event can come to another process.
func (c *Consumer) giveBack(batch []*held) {
	for _, h := range batch {
		if h.record == nil {
			h.record = &record{}
		}
		h.rest()
		h.record.Returned++
		c.store(h, func() {
			c.step(StepReturnStored)
			c.nak(h)
		})
	}
}

// giveBackRunning returns those of the events that have no final settlement yet.
func (c *Consumer) giveBackRunning(batch []*events.Event) {
	for _, e := range batch {
		if h := e.Held.(*held); c.table.move(h, settling, running) {
			c.giveBack([]*held{h})
		}
	}
}

// nak gives h back.
func (c *Consumer) nak(h *held) { c.nakWith(h, nakBody) }

func (c *Consumer) nakWith(h *held, body []byte) {
	if h.lapsed {
		return
	}
	if c.table.unsure(h) {
		c.doIn(lifeWait, func() { c.nakWith(h, body) })
		return
	}
	if err := c.nc.Publish(c.table.ackSubject(h), body); err != nil {
		c.log.Warn().Err(err).Str("event", h.event.ID).Msg("event could not be given back; it comes back when its lease ends")
	}
	c.metrics.ended(h.event.Kind, events.Return)
	c.table.remove(h)
}

// letGo forgets an event whose end could not be confirmed: it will be delivered again.
func (c *Consumer) letGo(h *held) {
	c.log.Warn().Str("event", h.event.ID).Str("worker", h.event.Target()).Uint64("seq", h.event.Origin.Seq).
		Msg("end of an event was not confirmed before its lease ended; it will be delivered again")
	c.metrics.lost.Inc()
	c.table.remove(h)
}

// retrier spaces the tries of one thing that failed.
type retrier struct{ policy *backoff.ExponentialBackOff }

// newRetrier gives up after limit; 0 = never.
func newRetrier(limit time.Duration) *retrier {
	return &retrier{backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(50*time.Millisecond), backoff.WithMaxInterval(5*time.Second), backoff.WithMaxElapsedTime(limit),
	)}
}

// after runs f on the settle goroutine when r says; false when it has given up.
func (c *Consumer) after(r *retrier, f func()) bool {
	wait := r.policy.NextBackOff()
	if wait == backoff.Stop {
		return false
	}
	c.doIn(wait, f)
	return true
}

// again tries f again for h later; false when h's lease is over.
func (c *Consumer) again(h *held, f func()) bool {
	if h.tries == nil {
		h.tries = newRetrier(c.cfg.AckWait)
	}
	return c.after(h.tries, f)
}
