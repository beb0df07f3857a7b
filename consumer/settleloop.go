package consumer

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/consumer/cancel"
	"github.com/pinwheel-run/pinwheel/consumer/schedule"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/lib/guard"
	"github.com/pinwheel-run/pinwheel/internal/lib/stored"
)

// settleTick is how often requests are checked for being late.
const settleTick = 50 * time.Millisecond

// run is the settle goroutine.
func (s *settler) run(life context.Context) {
	tick := time.NewTicker(settleTick)
	defer tick.Stop()
	var settled []lifecycle.Settlement
	var tasks []func()
	for {
		select {
		case <-life.Done():
			return
		case <-s.api.Wake:
		case m := <-s.acks.awaited():
			s.acks.requests.Answer(m)
		case now := <-tick.C:
			s.acks.expire(now)
			s.api.Expire(now)
			s.chunks.Tick(now)
			s.parker.Round(now)
			s.letterRounds.Tick(now)
			s.overdue.tick(now)
		}
		// Settlements are taken before tasks, so that a task that was there before a settlement is run before it.
		// Without a connection a reply could be lost in a dead socket's buffer, so settlements wait.
		if s.api.NC.IsConnected() {
			s.mu.Lock()
			settled, s.settled = s.settled, settled[:0]
			s.mu.Unlock()
		}
		tasks = s.api.Take(tasks)
		s.acks.take()
		s.reconnects = s.api.NC.Stats().Reconnects
		for _, f := range tasks {
			f()
		}
		for i := range settled {
			s.settle(settled[i])
		}
		s.acks.send()
		clear(tasks)
		clear(settled)
		tasks, settled = tasks[:0], settled[:0]
	}
}

// replace ends the events of earlier ticks in this process: those that wait at once, and those that run as soon as they
// can be interrupted.
func (s *settler) replace(n schedule.ReplaceNotice) {
	older := func(h *entry) bool { return h.from.stream == events.StreamSchedules && n.Replaces(&h.event.Event) }
	for _, h := range s.inflight.in(waiting) {
		if older(h) {
			s.retries.drop(h)
			s.endReplaced(h)
		}
	}
	for _, h := range s.inflight.in(running) {
		if older(h) && h.event.Halt != nil {
			h.replaced = true
			h.event.Halt.Fire()
		}
	}
}

// orphan forgets events whose stream no longer exists. Nothing more is published about them: not to the stream, which
// may have other events under their numbers, not to the bucket of attempts, and not to their requesters.
func (s *settler) orphan(batch []*entry) {
	if guard.StreamLife.Off() {
		return
	}
	for _, h := range batch {
		s.retries.drop(h)
		s.metrics.lost.Inc()
	}
	s.inflight.orphan(batch)
}

// cancelWith answers about events that somebody cancels, or purges: it is called on the settle goroutine. What this
// process gets of them from now on does not start.
func (s *settler) cancelWith(list []cancel.ID, mode cancel.Mode) []cancel.State {
	now := time.Now()
	s.cancels.Forbid(list, mode, now) // first: what is delivered meanwhile is found by forbid, or below
	states := make([]cancel.State, len(list))
	at, seqs := make(map[cancel.ID]int, len(list)), make(map[uint64]struct{}, len(list))
	for i, id := range list {
		at[id], states[i] = i, s.cancels.HowEnded(id)
		seqs[id.Seq] = struct{}{}
	}
	if mode == cancel.Released || s.inflight.len() == 0 {
		return states
	}
	var submitted []*lifecycle.Delivery
	for _, h := range s.inflight.filter(func(h *entry) bool {
		if _, may := seqs[h.event.Origin.Seq]; !may { // the lock is held: most are known by their number
			return false
		}
		_, is := at[h.cancelID()]
		return is
	}) {
		i := at[h.cancelID()]
		switch {
		case h.is(running):
			var tell bool
			if states[i], tell = s.cancelSubmitted(h, mode, now); tell {
				submitted = append(submitted, &h.event)
			}
		case h.is(waiting):
			states[i], h.cancelled, h.silent = cancel.Ending, true, mode == cancel.Deleted
			s.retries.drop(h)
			s.endCancelled(h)
		case h.is(acking):
			states[i] = cmp.Or(h.became, cancel.Ended)
		default:
			h.cancelled = h.cancelled || mode == cancel.All || h.is(checking)
			states[i] = cancel.Busy
		}
	}
	for _, e := range s.dispatcher.Cancel(submitted, mode == cancel.All) {
		h := e.Holder.(*entry)
		h.cancelled, h.silent = true, mode == cancel.Deleted
		states[at[h.cancelID()]] = cancel.Ending
	}
	return states
}

// cancelSubmitted says what becomes of an event that dispatch has, until dispatch says that it waited. tell says that
// dispatch is to be told. Of a run it is told once, and again after a while: threads are searched for it.
func (s *settler) cancelSubmitted(h *entry, mode cancel.Mode, now time.Time) (is cancel.State, tell bool) {
	began := h.event.Began()
	if mode != cancel.All {
		if began != 0 {
			return cancel.Running, false
		}
		return cancel.Busy, true // it is about to be queued
	}
	h.cancelled = true
	if began != 0 {
		if h.told == began && now.UnixNano()-h.toldAt < int64(tellAgain) {
			return cancel.Ending, false
		}
		h.told, h.toldAt = began, now.UnixNano()
	}
	return cancel.Ending, true
}

// tellAgain is after what time threads are told again to end a run.
const tellAgain = 2 * time.Second

// forbid takes those events out of a delivery that must not start.
func (c *Consumer) forbid(d *pulled) {
	if !c.cancels.Any() {
		return
	}
	found := map[*entry]bool{} // the value: nobody is told
	for _, h := range d.all {
		if is, silent := c.cancels.IsForbidden(h.cancelID(), time.Now()); is {
			found[h] = silent
		}
	}
	if len(found) == 0 {
		return
	}
	is := func(h *entry) bool { _, is := found[h]; return is }
	d.fresh = slices.DeleteFunc(d.fresh, func(e *lifecycle.Delivery) bool { return is(e.Holder.(*entry)) })
	d.malformed = slices.DeleteFunc(d.malformed, func(m malformed) bool { return is(m.entry) })
	c.api.Do(func() {
		for h, silent := range found {
			h.cancelled, h.silent = true, silent
			if h.is(replying) { // it is malformed
				c.settler.carryOut(h, cancelled(&h.event))
			} else {
				c.settler.endCancelled(h)
			}
		}
	})
}

// endCancelledLater ends an event whose publisher delayed it.
func (s *settler) endCancelledLater(h *entry) {
	s.inflight.move(h, replying)
	s.carryOut(h, cancelled(&h.event))
}

// noteCancelled counts and shows a cancelled event. Without a run, nobody has seen it end.
func (s *finisher) noteCancelled(h *entry, notRun bool) {
	if h.silent {
		return
	}
	s.metrics.cancelled(h.event.Kind)
	if notRun {
		s.observeCancelled(&h.event)
	}
}

func (s *finisher) observeCancelled(e *lifecycle.Delivery) {
	for _, o := range s.cfg.Observers.All() {
		o.Cancelled(e)
	}
}

// Cancel says what this process has of events that somebody cancels, and ends those as mode says. An event that it does
// not have does not start here for a while. It may be asked again and again.
func (c *Consumer) Cancel(ctx context.Context, list []cancel.ID, mode cancel.Mode) ([]cancel.State, error) {
	answer := make(chan []cancel.State, 1)
	c.api.Do(func() { answer <- c.settler.cancelWith(list, mode) })
	select {
	case states := <-answer:
		return states, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// AnswerCancelled answers for an event whose message was deleted before any process had it: its requester gets a reply,
// and observers see that it was cancelled. Any goroutine may call it.
func (c *Consumer) AnswerCancelled(stream string, m *stored.Message) {
	e := &lifecycle.Delivery{}
	o := events.Origin{Stream: stream, Seq: m.Sequence, Subject: m.Subject}
	_ = c.decode(e, o, &nats.Msg{Header: m.Header, Data: m.Data}, m.Time) // also a malformed event has a requester
	c.parts.Attach(e)
	c.api.Do(func() { c.settler.answerDeleted(e) })
}
